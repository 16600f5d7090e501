//! What stores in the dialect `strict` send, read from the log of their server. Every test on such a store checks it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::OnceLock;

use windlass_testkit::{Database, Options, PostgresServer};

/// The statements that are sent to one database, from its creation on.
pub(crate) struct StatementLog {
    file: PathBuf,
    start: u64,
    database: String,
}

/// The server of all strict stores. It logs every statement.
pub(crate) fn server() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let settings = [("log_statement", "all"), ("log_line_prefix", "~%a~%d~%c~")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        PostgresServer::start(Options { fsync: false, settings: settings.to_vec() })
    })
}

impl StatementLog {
    /// Creates a database of its own.
    pub(crate) async fn of_new_database() -> (Database, StatementLog) {
        let server = server();
        let file = server.log_file();
        let start = file.metadata().unwrap().len();
        let database = server.database().await;
        let log = StatementLog { file, start, database: database.name().to_owned() };
        (database, log)
    }

    /// The records of the stores as session and message, without those of the test's own connections.
    fn records(&self) -> Vec<(String, String)> {
        let mut file = File::open(&self.file).unwrap();
        file.seek(SeekFrom::Start(self.start)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        // The further lines of a record begin with a tab.
        let records = text.split("\n~").filter_map(|record| {
            let mut fields = record.trim_start_matches('~').splitn(4, '~');
            let (program, database) = (fields.next()?, fields.next()?);
            let (session, message) = (fields.next()?, fields.next()?);
            let is_ours = program == "windlass" && database == self.database;
            is_ours.then(|| (session.to_owned(), message.to_owned()))
        });
        records.collect()
    }

    /// How many transactions the server has refused to serialize, or ended because of a deadlock.
    pub(crate) fn refused(&self) -> usize {
        let refusals = ["could not serialize access", "deadlock detected"];
        let is_refusal = |message: &str| refusals.iter().any(|text| message.contains(text));
        let records = self.records();
        records.iter().filter(|(_, text)| text.starts_with("ERROR:") && is_refusal(text)).count()
    }

    /// Checks that every statement is part of a serializable transaction and that other databases know it.
    fn check(&self) {
        let mut open = HashSet::new();
        let mut statements = 0;
        for (session, message) in self.records() {
            let Some(sql) = statement(&message) else { continue };
            statements += 1;
            if let Some(construct) = forbidden(&sql) {
                panic!("{construct} in a statement of a strict store: {sql}");
            }
            if matches!(sql.as_str(), "commit" | "select; commit" | "rollback") {
                open.remove(&session);
            } else if sql.starts_with("begin;") {
                // Nothing but settings may precede it.
                let mut parts = sql.split(';').skip(1).map(str::trim);
                let isolation = parts.find(|part| !part.starts_with("set local"));
                assert_eq!(
                    isolation,
                    Some("set transaction isolation level serializable"),
                    "{sql}"
                );
                open.insert(session);
            } else {
                assert!(open.contains(&session), "outside of a transaction: {sql}");
            }
        }
        assert!(statements > 0, "no statement is logged");
    }
}

impl Drop for StatementLog {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

/// The statement of a record, in lower case, without comments and with single spaces.
fn statement(message: &str) -> Option<String> {
    let message = message.strip_prefix("LOG:  ")?;
    let sql = match message.strip_prefix("execute ") {
        Some(prepared) => prepared.split_once(": ")?.1,
        None => message.strip_prefix("statement: ")?,
    };
    let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    Some(words.join(" ").to_lowercase())
}

/// What distributed databases that speak PostgreSQL's protocol lack.
fn forbidden(sql: &str) -> Option<&'static str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let words: Vec<_> = sql.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let has = |phrase: &[&str]| words.windows(phrase.len()).any(|found| found == phrase);
    let phrases: [(&[&str], &str); 12] = [
        (&["listen"], "LISTEN"),
        (&["unlisten"], "UNLISTEN"),
        (&["notify"], "NOTIFY"),
        (&["ctid"], "ctid"),
        (&["xmin"], "xmin"),
        (&["tablesample"], "TABLESAMPLE"),
        (&["skip", "locked"], "SKIP LOCKED"),
        (&["transaction", "snapshot"], "SET TRANSACTION SNAPSHOT"),
        (&["lock", "table"], "LOCK TABLE"),
        (&["temp"], "a temporary table"),
        (&["temporary"], "a temporary table"),
        (&["language"], "a function"),
    ];
    // Advisory locks, notifications, exported snapshots and statistics.
    let internal = words.iter().any(|word| word.starts_with("pg_") && *word != "pg_settings");
    let found = phrases.iter().find(|(phrase, _)| has(phrase)).map(|(_, name)| *name);
    found.or(internal.then_some("a pg_ function or view")).or_else(|| {
        let is_block = words.first() == Some(&"do");
        is_block.then_some("a DO block")
    })
}

#[test]
fn forbidden_constructs_are_found() {
    let of = |message: &str| forbidden(&statement(message).unwrap());
    assert_eq!(of("LOG:  statement: SELECT; COMMIT"), None);
    assert_eq!(of("LOG:  execute <unnamed>: -- no ctid here\n\tSELECT attempts"), None);
    assert_eq!(of("LOG:  execute <unnamed>: SELECT 1 ON CONFLICT DO NOTHING"), None);
    for sql in [
        "LISTEN \"windlass\"",
        "SELECT pg_notify('windlass', $1)",
        "SELECT pg_advisory_xact_lock($1)",
        "SELECT 1 FROM t WHERE ctid = '(0,1)'",
        "SELECT 1 FROM t TABLESAMPLE system (1)",
        "SELECT pg_export_snapshot()",
        "SELECT 1 FROM t FOR UPDATE\n\tSKIP LOCKED",
        "CREATE TEMP TABLE t (n int)",
        "DO $$ BEGIN END $$",
    ] {
        assert!(of(&format!("LOG:  statement: {sql}")).is_some(), "{sql}");
    }
}
