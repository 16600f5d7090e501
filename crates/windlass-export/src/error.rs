//! What can go wrong with a part, whose business it is, and what to do about it.

use std::error::Error as StdError;
use std::io;

use object_store::client::HttpError;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that its column cannot hold exactly.
    #[error("column `{column}` ({kind}) cannot hold {value}: {why}")]
    Value {
        /// The column's name.
        column: String,
        /// The column's type, as a manifest writes it.
        kind: String,
        /// The value, cut short if it is long.
        value: String,
        /// Why not, and what would be right.
        why: String,
    },
    /// The place, the format or a placeholder is not as it should be.
    #[error("{0}")]
    Wrong(String),
    /// There is no room left.
    #[error("{place}: no room is left ({cause}); free some or name another place, then retry")]
    Full {
        /// Where.
        place: String,
        /// What the system said.
        cause: String,
    },
    /// We may not write there.
    #[error("{place}: not allowed ({cause}); grant the rights to write, list and delete there")]
    Denied {
        /// Where.
        place: String,
        /// What the system or the endpoint said.
        cause: String,
    },
    /// There are no credentials to write with.
    #[error(
        "{place}: no AWS credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where \
         a role gives them ({cause})"
    )]
    Credentials {
        /// Where.
        place: String,
        /// What was tried.
        cause: String,
    },
    /// There is no such bucket.
    #[error("{place}: there is no such bucket; create it, or correct the name or the region")]
    NoBucket {
        /// Where.
        place: String,
    },
    /// The endpoint does not answer, or says that it cannot now.
    #[error("{place}: away ({cause}); it is worth trying again")]
    Away {
        /// Where.
        place: String,
        /// What happened.
        cause: String,
    },
    /// Anything else that the system or the endpoint refuses.
    #[error("{place}: {cause}")]
    Refused {
        /// Where.
        place: String,
        /// What it said.
        cause: String,
    },
    /// A manifest that cannot be read.
    #[error("{place}: manifest.json cannot be read: {cause}")]
    Manifest {
        /// Where.
        place: String,
        /// Why.
        cause: String,
    },
    /// A writer that failed or was interrupted is used again.
    #[error("the part `{0}` was given up after an error; begin it anew")]
    GivenUp(String),
    /// The encoder failed: the rows are not as their schema says.
    #[error("the part cannot be encoded: {0}")]
    Encoding(String),
}

/// What the engine does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nobody has to do anything: it passes, so try again later and count nothing.
    Passing,
    /// Somebody has to do something first: trying again alone does not help.
    Refused,
    /// One record is to blame; the others can go on.
    Record,
}

impl Error {
    /// What to do about it.
    pub fn class(&self) -> Class {
        match self {
            Error::Value { .. } => Class::Record,
            Error::Away { .. } | Error::GivenUp(_) => Class::Passing,
            _ => Class::Refused,
        }
    }

    /// What an object store's error means.
    pub(crate) fn of(place: &str, error: object_store::Error) -> Error {
        use object_store::Error as E;
        let (place, cause) = (place.to_owned(), innermost(&error));
        if let Some(io) = find::<io::Error>(&error) {
            return Error::of_io(&place, io);
        }
        let told = error.to_string();
        // Where no credentials are given, they are asked for at an address that only machines of
        // the cloud have.
        if told.contains("169.254.169.254") {
            return Error::Credentials { place, cause };
        }
        match &error {
            E::NotFound { .. } if told.contains("NoSuchBucket") => Error::NoBucket { place },
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
                Error::Denied { place, cause }
            }
            // The type that has the status is not public, so it is read from what it says.
            _ if find::<HttpError>(&error).is_some() || is_busy(&told) => {
                Error::Away { place, cause }
            }
            _ => Error::Refused { place, cause },
        }
    }

    /// What an error of the file system means.
    pub(crate) fn of_io(place: &str, error: &io::Error) -> Error {
        use io::ErrorKind as K;
        let (place, cause) = (place.to_owned(), error.to_string());
        match error.kind() {
            // A file that may not grow is as full as a disk is.
            K::StorageFull | K::QuotaExceeded | K::FileTooLarge => Error::Full { place, cause },
            K::PermissionDenied | K::ReadOnlyFilesystem => Error::Denied { place, cause },
            K::TimedOut
            | K::Interrupted
            | K::NetworkDown
            | K::HostUnreachable
            | K::StaleNetworkFileHandle
            | K::ConnectionReset
            | K::ConnectionRefused => Error::Away { place, cause },
            _ => Error::Refused { place, cause },
        }
    }
}

/// The error of that type among the causes. One that is no cause of a request: those of a
/// connection are kinds of [`HttpError`], which says more about them.
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

/// Whether the endpoint said that it cannot now.
fn is_busy(told: &str) -> bool {
    let Some((_, status)) = told.split_once("status code: ") else { return false };
    status.starts_with(['5']) || status.starts_with("429") || status.starts_with("408")
}

/// The last cause, which is what happened; those above it repeat it in their own words.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let mut told = cause.to_string().replace(['\n', '\r'], " ");
    // Answers of an endpoint may be pages of XML.
    if let Some((end, _)) = told.char_indices().nth(600) {
        told.truncate(end);
        told.push('…');
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::ErrorKind;

    #[test]
    fn each_failure_of_a_disk_is_somebodys_business() {
        let class = |kind: ErrorKind| Error::of_io("file:x", &io::Error::from(kind)).class();
        assert_eq!(class(ErrorKind::StorageFull), Class::Refused);
        assert_eq!(class(ErrorKind::PermissionDenied), Class::Refused);
        assert_eq!(class(ErrorKind::TimedOut), Class::Passing);
        let full = io::Error::from_raw_os_error(nix::libc::ENOSPC);
        assert!(matches!(Error::of_io("file:x", &full), Error::Full { .. }));
    }

    #[test]
    fn a_status_tells_busy_from_refused() {
        assert!(is_busy("Server returned non-2xx status code: 503 Service Unavailable: "));
        assert!(is_busy("Server returned non-2xx status code: 429 Too Many Requests: "));
        assert!(!is_busy("Server returned non-2xx status code: 400 Bad Request: "));
    }
}
