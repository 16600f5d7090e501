//! Decides what to do about a cancelled transaction by the reason of each action.

use windlass_drivers::dynamodb::sdk::types::{CancellationReason, TransactWriteItem};
use windlass_drivers::{Error, ErrorClass};

/// An action of a transaction, and what it is for.
pub(super) struct Action {
    pub(super) purpose: Purpose,
    pub(super) item: TransactWriteItem,
}

impl Action {
    /// The table it writes to.
    pub(super) fn table(&self) -> &str {
        let TransactWriteItem { put, update, delete, .. } = &self.item;
        let names = [
            put.as_ref().map(|put| put.table_name()),
            update.as_ref().map(|update| update.table_name()),
            delete.as_ref().map(|delete| delete.table_name()),
        ];
        names.into_iter().flatten().next().unwrap_or_default()
    }
}

/// What an action is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The ledger's compare-and-set.
    Ledger,
    /// The record of an item, under the condition on its version.
    Item(usize),
    /// A row that an item inserts into this table.
    Insert(String),
    /// A row next to the ledger.
    Row,
}

/// What to do about a cancelled transaction.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// The ledger row was changed under another lease.
    LeaseLost,
    /// A value was refused. The same value would be refused again.
    Refused(Error),
    /// Nothing was committed. Retry without these items, and after a delay if `throttled`.
    Retry {
        /// Items whose condition failed.
        conflicts: Vec<usize>,
        /// Whether capacity was short, or another transaction was writing one of the records.
        throttled: bool,
    },
}

/// Judges the reasons, one for each action in order. A conflict with another transaction does not mean
/// a changed version: that transaction may have failed, or changed something else.
pub(super) fn judge<'a>(
    reasons: &[CancellationReason],
    actions: impl IntoIterator<Item = &'a Action>,
) -> Verdict {
    let (mut conflicts, mut throttled, mut refused) = (Vec::new(), false, None);
    for (reason, action) in reasons.iter().zip(actions) {
        match (reason.code().unwrap_or("None"), &action.purpose) {
            ("None", _) => {}
            ("ConditionalCheckFailed", Purpose::Ledger) => return Verdict::LeaseLost,
            ("ConditionalCheckFailed", Purpose::Item(n)) => conflicts.push(*n),
            ("ConditionalCheckFailed", Purpose::Insert(table)) => {
                let message = format!("insert: `{table}` has an item with this key already");
                refused.get_or_insert(Error::new(ErrorClass::Data, message));
            }
            ("TransactionConflict" | "ProvisionedThroughputExceeded" | "ThrottlingError", _) => {
                throttled = true;
            }
            (code, purpose) => {
                let message = reason.message().unwrap_or(code);
                // For any other reason, this item cannot be committed as it is.
                let error = Error {
                    class: ErrorClass::Data,
                    code: Some(code.to_owned()),
                    message: match purpose {
                        Purpose::Insert(table) => format!("insert into `{table}`: {message}"),
                        _ => message.to_owned(),
                    },
                };
                refused.get_or_insert(error);
            }
        }
    }
    match refused {
        Some(error) => Verdict::Refused(error),
        // Without a reason that is known here, the transaction may succeed later.
        None => Verdict::Retry { throttled: throttled || conflicts.is_empty(), conflicts },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &str) -> CancellationReason {
        CancellationReason::builder().code(code).build()
    }

    fn actions() -> Vec<Action> {
        let purposes = [
            Purpose::Ledger,
            Purpose::Item(0),
            Purpose::Item(1),
            Purpose::Insert("log".to_owned()),
            Purpose::Row,
        ];
        let action = |purpose| Action { purpose, item: TransactWriteItem::builder().build() };
        purposes.into_iter().map(action).collect()
    }

    fn judged(codes: [&str; 5]) -> Verdict {
        judge(&codes.map(reason), &actions())
    }

    const OK: &str = "None";
    const FAILED: &str = "ConditionalCheckFailed";

    #[test]
    fn a_failed_condition_affects_only_its_item() {
        let retry = |conflicts: Vec<usize>, throttled| Verdict::Retry { conflicts, throttled };
        assert_eq!(judged([OK, OK, FAILED, OK, OK]), retry(vec![1], false));
        assert_eq!(judged([OK, FAILED, FAILED, OK, OK]), retry(vec![0, 1], false));
    }

    #[test]
    fn a_failed_ledger_condition_takes_precedence() {
        assert_eq!(judged([FAILED, FAILED, "ValidationError", OK, OK]), Verdict::LeaseLost);
    }

    #[test]
    fn a_transaction_conflict_is_not_a_version_conflict() {
        for code in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"] {
            let waits = Verdict::Retry { conflicts: Vec::new(), throttled: true };
            assert_eq!(judged([OK, code, OK, OK, OK]), waits);
            assert_eq!(judged([code, OK, OK, OK, OK]), waits);
            let both = Verdict::Retry { conflicts: vec![1], throttled: true };
            assert_eq!(judged([OK, code, FAILED, OK, OK]), both);
        }
    }

    #[test]
    fn refused_values_are_not_retried() {
        let codes = ["ValidationError", "ItemCollectionSizeLimitExceeded", "DuplicateItem"];
        for code in codes {
            let Verdict::Refused(error) = judged([OK, code, FAILED, OK, OK]) else {
                panic!("{code}")
            };
            assert_eq!(error.class, ErrorClass::Data);
        }
        let Verdict::Refused(error) = judged([OK, OK, OK, FAILED, OK]) else { panic!() };
        assert!(error.message.contains("`log`"), "{error}");
    }
}
