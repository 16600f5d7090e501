//! The failure budget: how many dead letters a job may have before it is paused or fails.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Serialize, Serializer};

/// `failures = { budget = "0.01%", on_exceeded = "pause" }`
///
/// By default a job is paused when more than 1 % of its items and more than 100 items are dead letters.
///
/// ```
/// use windlass_core::{Budget, Failures, OnExceeded};
///
/// let failures = Failures { budget: Budget::Share(0.001), on_exceeded: OnExceeded::Pause };
/// assert_eq!(failures.budget.allowance(1_000_000), 1000);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// The limit.
    #[serde(default)]
    pub budget: Budget,
    /// What happens when it is exceeded.
    #[serde(default)]
    pub on_exceeded: OnExceeded,
}

/// What a job does when its failure budget is exceeded.
///
/// ```
/// use windlass_core::OnExceeded;
///
/// assert_eq!(OnExceeded::default(), OnExceeded::Pause);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExceeded {
    /// The job is paused; resuming it allows the same number again.
    #[default]
    Pause,
    /// The job fails.
    Fail,
}

/// A share of the planned items, or a count.
///
/// ```
/// use windlass_core::Budget;
///
/// assert_eq!(Budget::Count(5).allowance(1_000_000), 5);
/// assert_eq!(Budget::Share(0.01).allowance(1_000_000), 10_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// A number of dead letters.
    Count(u64),
    /// A share of the items planned, from 0 to 1.
    Share(f64),
}

/// A share is taken of at least this many items, so that one bad record among the first hundred does
/// not stop a job of millions.
const MIN_SHARE_BASE: u64 = 10_000;

impl Default for Budget {
    fn default() -> Budget {
        Budget::Share(0.01)
    }
}

impl std::fmt::Display for Failures {
    /// When the budget is exceeded, and what happens then.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let then = match self.on_exceeded {
            OnExceeded::Pause => "pauses",
            OnExceeded::Fail => "fails",
        };
        match self.budget {
            Budget::Count(1) => write!(f, "{then} at more than 1 dead letter"),
            Budget::Count(count) => write!(f, "{then} at more than {count} dead letters"),
            Budget::Share(share) => write!(
                f,
                "{then} at more than {} % and more than {} dead letters",
                percent(share),
                self.budget.allowance(0)
            ),
        }
    }
}

/// A share in percent, without the digits that the conversion to binary adds.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

impl Budget {
    /// The number of dead letters that one grant of the budget allows.
    pub fn allowance(self, items_planned: u64) -> u64 {
        match self {
            Budget::Count(count) => count,
            Budget::Share(share) => {
                (share * items_planned.max(MIN_SHARE_BASE) as f64).floor() as u64
            }
        }
    }
}

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Budget::Count(count) => serializer.serialize_u64(*count),
            Budget::Share(share) => serializer.serialize_str(&format!("{}%", percent(*share))),
        }
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Written {
            Count(u64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer) {
            Ok(Written::Count(count)) => return Ok(Budget::Count(count)),
            Ok(Written::Text(text)) => text,
            Err(_) => return Err(D::Error::custom(WANTED)),
        };
        let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
        match percent {
            Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Budget::Share(percent / 100.0)),
            _ => Err(D::Error::custom(format!("`{text}`: {WANTED}"))),
        }
    }
}

const WANTED: &str = "a budget is a count like 100 or a share like \"0.01%\"";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Budget, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn a_share_is_taken_of_at_least_ten_thousand_items() {
        let budget = parse("\"0.01%\"").unwrap();
        assert_eq!(budget.allowance(0), 1);
        assert_eq!(budget.allowance(10_000_000), 1_000);
        assert_eq!(parse("7").unwrap().allowance(10_000_000), 7);
    }

    #[test]
    fn the_default_allows_one_percent_and_a_hundred_items() {
        let failures = Failures::default();
        assert_eq!(failures.on_exceeded, OnExceeded::Pause);
        assert_eq!(failures.budget.allowance(5), 100);
        assert_eq!(failures.budget.allowance(1_000_000), 10_000);
        assert_eq!(failures.to_string(), "pauses at more than 1 % and more than 100 dead letters");
        let counted: Failures =
            serde_json::from_str(r#"{"budget": 7, "on_exceeded": "fail"}"#).unwrap();
        assert_eq!(counted.to_string(), "fails at more than 7 dead letters");
        let only: Failures = serde_json::from_str(r#"{"on_exceeded": "fail"}"#).unwrap();
        assert_eq!(only.budget, failures.budget);
    }

    #[test]
    fn anything_else_is_refused_with_what_would_be_right() {
        for bad in ["\"lots\"", "\"101%\"", "-1", "1.5", "\"5\""] {
            assert!(parse(bad).unwrap_err().to_string().contains("0.01%"), "{bad}");
        }
    }

    #[test]
    fn round_trips() {
        for budget in [Budget::Count(5), Budget::Share(0.5), Budget::Share(0.0001)] {
            assert_eq!(parse(&serde_json::to_string(&budget).unwrap()).unwrap(), budget);
        }
    }
}
