//! The identity of a submitter, and which records it may reach.

use crate::problem::{Code, Problem};
use crate::{Secret, Value};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The verified claims of a submitter. A claim with several values means any of them.
///
/// ```
/// use windlass_core::{Claims, Value};
///
/// let claims = Claims::from([("county".to_owned(), vec![Value::from("Kent"), Value::from("Essex")])]);
/// assert_eq!(claims["county"].len(), 2);
/// ```
pub type Claims = BTreeMap<String, Vec<Value>>;

/// The value of a claim that restricts nothing. Only configuration and operators may use it: the server
/// drops it from tokens, and the relay refuses it in an outbox.
pub const UNRESTRICTED: &str = "*";

/// Whether the values of a claim restrict nothing.
pub fn is_unrestricted(values: &[Value]) -> bool {
    matches!(values, [Value::Text(text)] if text == UNRESTRICTED)
}

/// The identity stored with a job: it filters every scan, retry and redrive of the job.
///
/// ```
/// use windlass_core::{Identity, Value};
///
/// let identity = Identity {
///     name: "ada".to_owned(),
///     claims: [("county".to_owned(), vec![Value::from("Kent")])].into(),
///     ..Identity::default()
/// };
/// assert_eq!(identity.claims["county"], [Value::from("Kent")]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The submitter's name, shown as `submittedBy`.
    pub name: String,
    /// The claims that `source.claims` turns into a row filter.
    #[serde(default)]
    pub claims: Claims,
    /// When the token that they came from expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<DateTime<Utc>>,
    /// The submitter's own token, while the request is being submitted.
    #[serde(skip)]
    pub token: Option<Secret>,
    /// The token, encrypted, for jobs that forward it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_token: Option<String>,
}

impl Identity {
    /// Refuses a caller whose claims do not cover those of a job, for the claims that its job type
    /// filters by. A claim that the caller does not have is covered only for an operator.
    ///
    /// # Errors
    /// The first claim that the caller lacks, or whose values do not cover those of the job.
    pub fn check_covers(
        &self,
        job: &Identity,
        filtered: &BTreeMap<String, String>,
        is_operator: bool,
    ) -> Result<(), Problem> {
        for claim in filtered.keys() {
            let mine = self.claims.get(claim).map(Vec::as_slice).unwrap_or_default();
            if is_operator && mine.is_empty() {
                continue;
            }
            let theirs = job.claims.get(claim).map(Vec::as_slice).unwrap_or_default();
            let text = |value: &Value| value.to_text();
            let covered = is_unrestricted(mine)
                || !theirs.is_empty()
                    && !is_unrestricted(theirs)
                    && theirs.iter().all(|value| mine.iter().any(|have| text(have) == text(value)));
            if !covered {
                let detail = "your claims do not cover those of the job; submit a job of your own, or ask \
                              an operator";
                return Err(Problem::field(Code::Request, format!("claims.{claim}"), detail));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(county: &[&str]) -> Identity {
        let values: Vec<Value> = county.iter().map(|value| Value::from(*value)).collect();
        let claims = match values.is_empty() {
            true => Claims::new(),
            false => [("county".to_owned(), values)].into(),
        };
        Identity { claims, ..Identity::default() }
    }

    #[test]
    fn a_caller_covers_a_job_whose_values_it_has_all() {
        let filtered = [("county".to_owned(), "county".to_owned())].into();
        let covers = |mine: &[&str], theirs: &[&str], is_operator| {
            with(mine).check_covers(&with(theirs), &filtered, is_operator).is_ok()
        };
        assert!(covers(&["Kent", "Essex"], &["Kent"], false));
        assert!(covers(&["*"], &["Kent"], false) && covers(&["*"], &["*"], false));
        assert!(covers(&[], &["Kent"], true) && covers(&[], &["*"], true));
        for (mine, theirs, is_operator) in [
            (&["Kent"] as &[&str], &["Kent", "Essex"] as &[&str], false),
            (&["kent"], &["Kent"], false),
            (&["Kent"], &["*"], false),
            (&["Essex"], &["Kent"], true),
            (&[], &["Kent"], false),
            (&["Kent"], &[], false),
        ] {
            assert!(!covers(mine, theirs, is_operator), "{mine:?} {theirs:?}");
        }
        assert!(with(&[]).check_covers(&with(&[]), &BTreeMap::new(), false).is_ok());
    }
}
