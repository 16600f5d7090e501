//! A model of the commit protocol, checked exhaustively within small bounds.
//!
//! [`Protocol`] models lease, fence, confirm, commit and complete, with everything that can happen between two
//! steps: crashes, leases that expire while their holder runs, statements whose answer is lost and that are executed
//! later, failed chunks, retry, cancel, prune and a restored store. [`Generations`] models how a restored store is
//! detected when a process starts. `docs/design/model.md` describes the bounds and the results.
//!
//! Each [`Action`] names the functions that it stands for. Each [`Clause`] of the protocol can be switched off; the
//! tests show which property then fails.
//!
//! ```
//! use stateright::{Checker, Model};
//! use windlass_model::{Clause, Protocol, Scope};
//!
//! let checker = Protocol::new(Scope::smallest()).checker().spawn_bfs().join();
//! checker.assert_properties();
//!
//! let broken = Protocol::new(Scope::smallest()).without(Clause::EffectWithLedger);
//! assert!(broken.checker().spawn_bfs().join().discovery("each effect at most once").is_some());
//! ```

mod action;
mod clause;
mod generations;
mod ledger;
mod operator;
mod process;
mod properties;
mod protocol;
mod scope;
mod state;
mod store;

pub use action::Action;
pub use clause::Clause;
pub use generations::{GenerationAction, GenerationClause, GenerationState, Generations};
pub use protocol::Protocol;
pub use scope::{Budget, Scope};
pub use state::State;
