//! The errors of writing and reading parts.

use std::error::Error as StdError;
use std::io;

use object_store::client::HttpError;
use windlass_core::ErrorKind;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of writing or reading a part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that its column cannot represent exactly.
    #[error("column `{column}` ({kind}) cannot hold {value}: {why}")]
    Value {
        /// The column's name.
        column: String,
        /// The column's type, as a manifest writes it.
        kind: String,
        /// The value, shortened if it is long.
        value: String,
        /// The reason, and what would fit.
        why: String,
    },
    /// The destination, the format or a placeholder is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The disk or the quota is full.
    #[error(
        "{destination}: no space left ({cause}); free some or use another destination, then retry"
    )]
    Full {
        /// The destination.
        destination: String,
        /// The error of the system.
        cause: String,
    },
    /// The privileges to write, list or delete are missing.
    #[error(
        "{destination}: permission denied ({cause}); grant the rights to write, list and delete there"
    )]
    Denied {
        /// The destination.
        destination: String,
        /// The error of the system or of the endpoint.
        cause: String,
    },
    /// No credentials were found.
    #[error(
        "{destination}: no AWS credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run \
         where a role provides them ({cause})"
    )]
    Credentials {
        /// The destination.
        destination: String,
        /// The error of the last provider.
        cause: String,
    },
    /// The bucket does not exist.
    #[error("{destination}: no such bucket; create it, or correct the name or the region")]
    NoBucket {
        /// The destination.
        destination: String,
    },
    /// The endpoint does not answer, or reports that it is overloaded.
    #[error("{destination}: unavailable ({cause}); retry later")]
    Unavailable {
        /// The destination.
        destination: String,
        /// The error of the system or of the endpoint.
        cause: String,
    },
    /// Any other error of the system or of the endpoint.
    #[error("{destination}: {cause}")]
    Refused {
        /// The destination.
        destination: String,
        /// The error of the system or of the endpoint.
        cause: String,
    },
    /// A manifest that cannot be read.
    #[error("{destination}: manifest.json cannot be read: {cause}")]
    Manifest {
        /// The destination.
        destination: String,
        /// The error of reading it.
        cause: String,
    },
    /// A writer is used after it failed or was interrupted.
    #[error("the part `{0}` was aborted after an error; start it again")]
    Aborted(String),
    /// The rows do not match their schema.
    #[error("the part cannot be encoded: {0}")]
    Encoding(String),
}

impl Error {
    /// Whether trying again can help. Most errors are transient: an operator can free space or grant
    /// privileges while the write is retried.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Unavailable { .. } | Error::Aborted(_) => ErrorKind::Unavailable,
            Error::Value { .. } => ErrorKind::Permanent,
            _ => ErrorKind::Transient,
        }
    }

    /// Whether a single record causes the error, so that the part succeeds without it.
    pub fn is_record_error(&self) -> bool {
        matches!(self, Error::Value { .. })
    }

    /// Classifies an error of an object store.
    pub(crate) fn from_store(destination: &str, error: object_store::Error) -> Error {
        use object_store::Error as E;
        let (destination, cause) = (destination.to_owned(), innermost(&error));
        if let Some(io) = find::<io::Error>(&error) {
            return Error::from_io(&destination, io);
        }
        let message = error.to_string();
        // Without configured credentials, the client asks at an address that only cloud machines have.
        if message.contains("169.254.169.254") {
            return Error::Credentials { destination, cause };
        }
        match &error {
            E::NotFound { .. } if message.contains("NoSuchBucket") => {
                Error::NoBucket { destination }
            }
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
                Error::Denied { destination, cause }
            }
            // The type that has the status is not public, so the status is read from the message.
            _ if find::<HttpError>(&error).is_some() || is_overloaded(&message) => {
                Error::Unavailable { destination, cause }
            }
            _ => Error::Refused { destination, cause },
        }
    }

    /// Classifies an error of the file system.
    pub(crate) fn from_io(destination: &str, error: &io::Error) -> Error {
        use io::ErrorKind as K;
        let (destination, cause) = (destination.to_owned(), error.to_string());
        match error.kind() {
            // A file that may not grow is treated like a full disk.
            K::StorageFull | K::QuotaExceeded | K::FileTooLarge => {
                Error::Full { destination, cause }
            }
            K::PermissionDenied | K::ReadOnlyFilesystem => Error::Denied { destination, cause },
            K::TimedOut
            | K::Interrupted
            | K::NetworkDown
            | K::HostUnreachable
            | K::StaleNetworkFileHandle
            | K::ConnectionReset
            | K::ConnectionRefused => Error::Unavailable { destination, cause },
            _ => Error::Refused { destination, cause },
        }
    }
}

/// The first cause of this type. Stops at an [`HttpError`], which tells more about a failed request than
/// its own causes.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        if error.is::<HttpError>() {
            return None;
        }
        cause = error.source();
    }
    None
}

/// Whether the status means that the endpoint cannot serve now.
fn is_overloaded(message: &str) -> bool {
    let Some((_, status)) = message.split_once("status code: ") else { return false };
    status.starts_with(['5']) || status.starts_with("429") || status.starts_with("408")
}

/// The last cause. The errors above it only repeat it.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let mut message = cause.to_string().replace(['\n', '\r'], " ");
    // An endpoint may answer with pages of XML.
    if let Some((end, _)) = message.char_indices().nth(600) {
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_classified() {
        let kind = |kind| Error::from_io("file:x", &io::Error::from(kind)).kind();
        assert_eq!(kind(io::ErrorKind::StorageFull), ErrorKind::Transient);
        assert_eq!(kind(io::ErrorKind::PermissionDenied), ErrorKind::Transient);
        assert_eq!(kind(io::ErrorKind::TimedOut), ErrorKind::Unavailable);
        let full = io::Error::from_raw_os_error(nix::libc::ENOSPC);
        assert!(matches!(Error::from_io("file:x", &full), Error::Full { .. }));
    }

    #[test]
    fn the_status_distinguishes_overload_from_refusal() {
        assert!(is_overloaded("Server returned non-2xx status code: 503 Service Unavailable: "));
        assert!(is_overloaded("Server returned non-2xx status code: 429 Too Many Requests: "));
        assert!(!is_overloaded("Server returned non-2xx status code: 400 Bad Request: "));
    }
}
