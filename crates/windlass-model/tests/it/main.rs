//! Checks the model: the protocol holds in every scope, each clause is needed, and the code still has what the model
//! names.

#![allow(clippy::unwrap_used, reason = "a test reports its failure with a panic")]

mod assumptions;
mod clauses;
mod names;
mod scopes;
