//! What to do about an error, decided the same way for every database, step and file.

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It may pass by itself: try again, as often as the retry policy allows.
    Transient,
    /// Trying again cannot help: the definition, the data or the privileges are wrong.
    Permanent,
    /// The other side cannot be reached, or asks for time: try again until it answers.
    Unavailable,
}
