//! Errors in the user's input: which field is wrong, why, and what is expected.

use serde::Serialize;

/// The kind of a problem. Each code has a section in `docs/errors.md`.
///
/// ```
/// use windlass_core::problem::Code;
///
/// assert_eq!(Code::Request.as_str(), "WL0003");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The configuration cannot be read.
    Configuration,
    /// No job type has that name.
    UnknownJobType,
    /// A field of the request is wrong.
    Request,
    /// The table, its key, its columns or its indexes do not serve the job type.
    Source,
    /// A database cannot be reached.
    Unreachable,
    /// The tables of the ledger are missing and cannot be created.
    Ledger,
    /// The idempotency key was used for another request.
    IdempotencyKey,
    /// The job's status does not allow that.
    Status,
    /// There is no such job or dead letter.
    NotFound,
    /// This process has no handler of that name.
    Handler,
}

impl Code {
    /// Every code, for the documentation's test.
    pub const ALL: &'static [Code] = &[
        Code::Configuration,
        Code::UnknownJobType,
        Code::Request,
        Code::Source,
        Code::Unreachable,
        Code::Ledger,
        Code::IdempotencyKey,
        Code::Status,
        Code::NotFound,
        Code::Handler,
    ];

    /// The code operators search for.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::Configuration => "WL0001",
            Code::UnknownJobType => "WL0002",
            Code::Request => "WL0003",
            Code::Source => "WL0004",
            Code::Unreachable => "WL0005",
            Code::Ledger => "WL0006",
            Code::IdempotencyKey => "WL0007",
            Code::Status => "WL0008",
            Code::NotFound => "WL0009",
            Code::Handler => "WL0010",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One problem of the configuration or of a request.
///
/// ```
/// use windlass_core::Config;
///
/// let problem = Config::parse("[stoer]", |_| None).unwrap_err();
/// assert_eq!(problem.line, Some(1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problem {
    /// The kind of problem.
    pub code: Code,
    /// Which field, as the user wrote it: `parallelSegments`, `jobs.REFRESH.source.key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The line of the configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What is wrong, and what is expected.
    pub detail: String,
}

impl Problem {
    /// A problem that is not about one field.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem { code, field: None, line: None, detail: detail.into() }
    }

    /// A problem with a field.
    pub fn field(code: Code, field: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem { field: Some(field.into()), ..Problem::new(code, detail) }
    }

    /// Adds the line of the configuration file.
    pub fn at_line(mut self, line: usize) -> Problem {
        self.line = (line > 0).then_some(line);
        self
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.code.as_str())?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.detail)
    }
}
