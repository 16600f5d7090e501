//! Results and exports that are loaded into Redshift, on the testkit's stand-in.

mod check;
mod fixture;
mod killed;
mod large;
mod load;
pub(crate) mod nightly;
