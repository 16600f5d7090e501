//! Authentication and authorization: who the caller is, and what their roles allow.

mod authenticate;
mod caller;
mod keys;
pub(crate) mod session;
mod token;

pub(crate) use authenticate::Authenticator;
use authenticate::JwtVerifier;
pub(crate) use caller::{Administrator, Caller, Operator, Submitter, Viewer};
pub use keys::check_keys;
pub use token::{TokenRequest, make_token};

/// The keys in `[auth]` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A key cannot be read, or is not of a supported kind.
    #[error("auth.{field}: {detail}")]
    Key {
        /// The field of `[auth]`.
        field: &'static str,
        /// What is wrong, and what would be right.
        detail: String,
    },
}

impl AuthError {
    fn new(field: &'static str, detail: impl Into<String>) -> AuthError {
        AuthError::Key { field, detail: detail.into() }
    }
}
