//! Who asks, and what they may do.

mod authenticate;
mod caller;
mod keys;
pub(crate) mod session;
mod token;

pub(crate) use authenticate::Authenticator;
use authenticate::Lock;
pub(crate) use caller::{Administrator, Caller, Operator, Submitter, Viewer};
pub use keys::try_keys;
pub use token::{TokenRequest, make_token};

/// The configuration does not tell who may do what.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A key cannot be used.
    #[error("auth.{field}: {detail}")]
    Key {
        /// Which field of `[auth]`.
        field: &'static str,
        /// What is wrong and what would be right.
        detail: String,
    },
}

impl AuthError {
    fn new(field: &'static str, detail: impl Into<String>) -> AuthError {
        AuthError::Key { field, detail: detail.into() }
    }
}
