//! The statements of a client's current transaction, read from its messages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::wire::Message;

/// The prepared statements of a connection, and the statements of its current transaction.
#[derive(Default)]
pub(super) struct Statements {
    prepared: HashMap<String, Arc<str>>,
    transaction: HashSet<Arc<str>>,
}

impl Statements {
    /// Records a message and returns whether it commits.
    pub(super) fn see(&mut self, message: &Message) -> bool {
        match message.kind() {
            b'Q' => self.run(message.text(0).into()),
            b'P' => {
                self.prepared.insert(message.text(0), message.text(1).into());
                false
            }
            // Clients prepare once and bind often, so a statement belongs to the transaction that binds it. The
            // message names the portal first and then the statement.
            b'B' => match self.prepared.get(&message.text(1)) {
                Some(sql) => self.run(sql.clone()),
                None => false,
            },
            _ => false,
        }
    }

    /// Whether the transaction ran a statement containing this text.
    pub(super) fn ran(&self, text: &str) -> bool {
        self.transaction.iter().any(|sql| sql.contains(text))
    }

    /// Records a statement and returns whether it commits.
    pub(super) fn run(&mut self, sql: Arc<str>) -> bool {
        let begins = |part: &str| {
            ["BEGIN", "START"].iter().any(|word| first_word(part).eq_ignore_ascii_case(word))
        };
        // Settings may come first.
        if begins(&sql)
            || (first_word(&sql).eq_ignore_ascii_case("SET") && sql.split(';').any(begins))
        {
            self.transaction.clear();
        }
        let last = sql.trim_end().trim_end_matches(';').rsplit(';').next().unwrap_or_default();
        let commits = first_word(last).eq_ignore_ascii_case("COMMIT");
        self.transaction.insert(sql);
        commits
    }
}

fn first_word(sql: &str) -> &str {
    let sql = sql.trim_start();
    sql.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(sql: &str) -> Message {
        Message { bytes: [b"Q\0\0\0\0", sql.as_bytes(), b"\0"].concat() }
    }

    #[test]
    fn every_spelling_of_commit_is_recognised() {
        let mut statements = Statements::default();
        for sql in ["COMMIT", " commit ;", "COMMIT WORK", "UPDATE t SET a = 1; COMMIT;"] {
            assert!(statements.see(&query(sql)), "{sql}");
        }
        for sql in ["COMMITTED", "SELECT 'COMMIT'", "ROLLBACK", "BEGIN", ""] {
            assert!(!statements.see(&query(sql)), "{sql}");
        }
    }

    #[test]
    fn a_new_transaction_forgets_the_statements_of_the_last_one() {
        let mut statements = Statements::default();
        statements.see(&query("BEGIN"));
        statements.see(&query("UPDATE ledger SET a = 1"));
        assert!(statements.ran("ledger"));
        statements.see(&query("COMMIT"));
        statements.see(&query("START TRANSACTION"));
        assert!(!statements.ran("ledger"));
    }
}
