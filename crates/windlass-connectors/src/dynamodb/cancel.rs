//! Why a transaction was cancelled: whose condition failed, what was refused, and what only takes
//! patience.

use windlass_drivers::dynamodb::sdk::types::{CancellationReason, TransactWriteItem};
use windlass_drivers::{Class, Error};

/// An action of a transaction, and whose it is.
pub(super) struct Action {
    pub(super) of: Of,
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

/// Whose an action is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The ledger's compare-and-set.
    Ledger,
    /// An item's own record, under its version.
    Item(usize),
    /// A row that an item inserts into this table.
    Insert(String),
    /// A row beside the ledger.
    Row,
}

/// What is to be done about it.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// The ledger has moved on.
    Lost,
    /// A value was refused, and would be again.
    Refused(Error),
    /// Nothing was committed: again without these items, after a rest where somebody was busy.
    Again {
        /// Items whose condition failed.
        missed: Vec<usize>,
        /// Whether capacity was short, or another transaction was at one of the records.
        busy: bool,
    },
}

/// Judges the reasons, one for each action in order. That another transaction was at a record says
/// nothing about its version: it may have failed, or changed something else.
pub(super) fn judge(reasons: &[CancellationReason], actions: &[Action]) -> Verdict {
    let (mut missed, mut busy, mut refused) = (Vec::new(), false, None);
    for (reason, action) in reasons.iter().zip(actions) {
        match (reason.code().unwrap_or("None"), &action.of) {
            ("None", _) => {}
            ("ConditionalCheckFailed", Of::Ledger) => return Verdict::Lost,
            ("ConditionalCheckFailed", Of::Item(n)) => missed.push(*n),
            ("ConditionalCheckFailed", Of::Insert(table)) => {
                let message = format!("insert: `{table}` has an item with this key already");
                refused.get_or_insert(Error::new(Class::Data, message));
            }
            ("TransactionConflict" | "ProvisionedThroughputExceeded" | "ThrottlingError", _) => {
                busy = true;
            }
            (code, of) => {
                let message = reason.message().unwrap_or(code);
                // Whatever else it is, the item that it happened to cannot be committed as it is.
                let error = Error {
                    class: Class::Data,
                    code: Some(code.to_owned()),
                    message: match of {
                        Of::Insert(table) => format!("insert into `{table}`: {message}"),
                        _ => message.to_owned(),
                    },
                };
                refused.get_or_insert(error);
            }
        }
    }
    match refused {
        Some(error) => Verdict::Refused(error),
        // Cancelled without a reason of ours: nobody knows more than that it may pass.
        None => Verdict::Again { busy: busy || missed.is_empty(), missed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &str) -> CancellationReason {
        CancellationReason::builder().code(code).build()
    }

    fn actions() -> Vec<Action> {
        let of = [Of::Ledger, Of::Item(0), Of::Item(1), Of::Insert("log".to_owned()), Of::Row];
        of.into_iter().map(|of| Action { of, item: TransactWriteItem::builder().build() }).collect()
    }

    fn judged(codes: [&str; 5]) -> Verdict {
        judge(&codes.map(reason), &actions())
    }

    const OK: &str = "None";
    const FAILED: &str = "ConditionalCheckFailed";

    #[test]
    fn a_condition_that_fails_is_its_items_alone() {
        let again = |missed: Vec<usize>, busy| Verdict::Again { missed, busy };
        assert_eq!(judged([OK, OK, FAILED, OK, OK]), again(vec![1], false));
        assert_eq!(judged([OK, FAILED, FAILED, OK, OK]), again(vec![0, 1], false));
    }

    #[test]
    fn the_ledger_comes_first() {
        assert_eq!(judged([FAILED, FAILED, "ValidationError", OK, OK]), Verdict::Lost);
    }

    #[test]
    fn another_transaction_is_no_version_conflict() {
        for code in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"] {
            let waits = Verdict::Again { missed: Vec::new(), busy: true };
            assert_eq!(judged([OK, code, OK, OK, OK]), waits);
            assert_eq!(judged([code, OK, OK, OK, OK]), waits);
            let both = Verdict::Again { missed: vec![1], busy: true };
            assert_eq!(judged([OK, code, FAILED, OK, OK]), both);
        }
    }

    #[test]
    fn what_is_refused_would_be_refused_again() {
        let codes = ["ValidationError", "ItemCollectionSizeLimitExceeded", "DuplicateItem"];
        for code in codes {
            let Verdict::Refused(error) = judged([OK, code, FAILED, OK, OK]) else {
                panic!("{code}")
            };
            assert_eq!(error.class, Class::Data);
        }
        let Verdict::Refused(error) = judged([OK, OK, OK, FAILED, OK]) else { panic!() };
        assert!(error.message.contains("`log`"), "{error}");
    }
}
