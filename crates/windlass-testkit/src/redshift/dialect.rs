//! What Redshift refuses of PostgreSQL's SQL, by the lists of unsupported features, types and functions in its
//! documentation, and what it accepts but does not enforce.

use sqlparser::ast::{ColumnOption, CreateTable, Statement};
use sqlparser::dialect::RedshiftSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

/// An error of the server.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// Statements that may be carried out.
pub(super) enum Checked {
    /// For PostgreSQL, without what Redshift does not enforce.
    Statements(String),
    Copy(Copy),
}

/// `COPY table FROM 'manifest' IAM_ROLE 'role' FORMAT AS PARQUET MANIFEST`
pub(super) struct Copy {
    pub(super) table: String,
    pub(super) manifest: String,
}

impl Refusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    /// A statement with which PostgreSQL raises the error, so that the transaction fails.
    pub(super) fn raised(&self) -> String {
        let message = self.message.replace('\\', "\\\\").replace('\'', "''").replace('$', "");
        let code = self.code;
        format!("DO $$BEGIN RAISE EXCEPTION USING MESSAGE = '{message}', ERRCODE = '{code}'; END$$")
    }
}

/// Words that begin, or stand in, a statement that Redshift does not have.
const UNSUPPORTED: &[(&[&str], &str)] = &[
    (&["ON", "CONFLICT"], "ON CONFLICT"),
    (&["RETURNING"], "RETURNING"),
    (&["FOR", "UPDATE"], "SELECT FOR UPDATE"),
    (&["FOR", "SHARE"], "SELECT FOR SHARE"),
    (&["SKIP", "LOCKED"], "SKIP LOCKED"),
    (&["ON", "COMMIT"], "ON COMMIT"),
    (&["IS", "DISTINCT"], "IS DISTINCT FROM"),
    (&["IS", "NOT", "DISTINCT"], "IS NOT DISTINCT FROM"),
    (&["DISTINCT", "ON"], "SELECT DISTINCT ON"),
    (&["CREATE", "INDEX"], "CREATE INDEX"),
    (&["CREATE", "UNIQUE", "INDEX"], "CREATE INDEX"),
    (&["CREATE", "TRIGGER"], "CREATE TRIGGER"),
    (&["CREATE", "RULE"], "CREATE RULE"),
    (&["CREATE", "SEQUENCE"], "CREATE SEQUENCE"),
    (&["CREATE", "EXTENSION"], "CREATE EXTENSION"),
    (&["CREATE", "DOMAIN"], "CREATE DOMAIN"),
    (&["CREATE", "UNLOGGED"], "CREATE UNLOGGED TABLE"),
    (&["INHERITS"], "table inheritance"),
    (&["TABLESPACE"], "tablespaces"),
    (&["LISTEN"], "LISTEN"),
    (&["NOTIFY"], "NOTIFY"),
    (&["SAVEPOINT"], "SAVEPOINT"),
    (&["LATERAL"], "LATERAL"),
    (&["EXCLUDE", "USING"], "exclusion constraints"),
    (&["CHECK", "("], "CHECK constraints"),
    (&["FILTER", "("], "aggregates with FILTER"),
    (&["FROM", "STDIN"], "COPY FROM STDIN"),
    (&["TO", "STDOUT"], "COPY TO STDOUT"),
    (&["TABLESAMPLE"], "TABLESAMPLE"),
];

/// Types of PostgreSQL that Redshift does not have.
const TYPES: &[&str] = &[
    "UUID",
    "JSON",
    "JSONB",
    "BYTEA",
    "XML",
    "INET",
    "CIDR",
    "MACADDR",
    "MONEY",
    "TSVECTOR",
    "TSQUERY",
    "SERIAL",
    "BIGSERIAL",
    "SMALLSERIAL",
    "HSTORE",
    "CITEXT",
    "INT4RANGE",
    "INT8RANGE",
    "TSTZRANGE",
];

/// Functions of PostgreSQL that Redshift does not have.
const FUNCTIONS: &[&str] = &[
    "UNNEST",
    "ARRAY_AGG",
    "STRING_AGG",
    "JSON_AGG",
    "JSONB_AGG",
    "JSON_BUILD_OBJECT",
    "JSONB_BUILD_OBJECT",
    "TO_JSON",
    "TO_JSONB",
    "ROW_TO_JSON",
    "TO_REGCLASS",
    "CLOCK_TIMESTAMP",
    "TRANSACTION_TIMESTAMP",
    "STATEMENT_TIMESTAMP",
    "PG_SLEEP",
    "PG_ADVISORY_LOCK",
    "PG_ADVISORY_XACT_LOCK",
    "PG_TRY_ADVISORY_XACT_LOCK",
    "PG_NOTIFY",
    "GEN_RANDOM_UUID",
    "NEXTVAL",
    "CURRVAL",
    "ENCODE",
    "FORMAT",
    "REGEXP_MATCHES",
    "STRING_TO_ARRAY",
    "ARRAY_TO_STRING",
    "MAKE_DATE",
    "SHA256",
    "QUOTE_NULLABLE",
];

/// Settings of PostgreSQL that Redshift does not have.
const SETTINGS: &[&str] = &[
    "SYNCHRONOUS_COMMIT",
    "LOCK_TIMEOUT",
    "IDLE_IN_TRANSACTION_SESSION_TIMEOUT",
    "JIT",
    "WORK_MEM",
    "STANDARD_CONFORMING_STRINGS",
    "MAX_PARALLEL_WORKERS_PER_GATHER",
    "INTERVALSTYLE",
];

/// The most digits of a decimal.
const MAX_DIGITS: u64 = 38;

/// Checks the statements of a message.
pub(super) fn check(sql: &str) -> Result<Checked, Refusal> {
    let tokens = tokens(sql)?;
    refuse_constructs(&tokens)?;
    let first = word(tokens.first());
    if first == "COPY" {
        return copy_of(&tokens).map(Checked::Copy);
    }
    if first == "LOCK" {
        return lock_of(&tokens).map(Checked::Statements);
    }
    let statements = Parser::parse_sql(&RedshiftSqlDialect {}, sql)
        .map_err(|error| Refusal::new("42601", format!("syntax error: {error}")))?;
    let mut is_rewritten = false;
    let mut texts = Vec::new();
    for statement in statements {
        let text = match statement {
            Statement::CreateTable(table) => {
                is_rewritten = true;
                unenforced(table).to_string()
            }
            Statement::Query(query) if query.to_string().trim() == "SELECT" => {
                return Err(Refusal::new("42601", "syntax error: SELECT without a list"));
            }
            statement => statement.to_string(),
        };
        texts.push(text);
    }
    // What is not rewritten is forwarded as it came.
    Ok(Checked::Statements(if is_rewritten { texts.join("; ") } else { sql.to_owned() }))
}

/// A table without its keys, which Redshift accepts and does not enforce.
fn unenforced(mut table: CreateTable) -> CreateTable {
    table.constraints.clear();
    let is_kept = |option: &ColumnOption| {
        matches!(option, ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_))
    };
    for column in &mut table.columns {
        column.options.retain(|option| is_kept(&option.option));
    }
    table
}

fn tokens(sql: &str) -> Result<Vec<Token>, Refusal> {
    let all = Tokenizer::new(&RedshiftSqlDialect {}, sql).tokenize();
    let all = all.map_err(|error| Refusal::new("42601", format!("syntax error: {error}")))?;
    Ok(all.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect())
}

/// An unquoted word in upper case, or a parenthesis.
fn word(token: Option<&Token>) -> String {
    match token {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_uppercase(),
        Some(Token::LParen) => "(".to_owned(),
        _ => String::new(),
    }
}

fn refuse_constructs(tokens: &[Token]) -> Result<(), Refusal> {
    let unsupported = |what: &str| Refusal::new("0A000", format!("{what} is not supported"));
    let words: Vec<String> = tokens.iter().map(|token| word(Some(token))).collect();
    for at in 0..tokens.len() {
        let found = UNSUPPORTED.iter().find(|(wanted, _)| {
            words[at..].len() >= wanted.len()
                && words[at..].iter().zip(*wanted).all(|(a, b)| a == b)
        });
        if let Some((_, what)) = found {
            return Err(unsupported(what));
        }
        let (this, next) = (words[at].as_str(), words.get(at + 1).map_or("", String::as_str));
        let before = at.checked_sub(1).map_or("", |at| words[at].as_str());
        if matches!(tokens[at], Token::Placeholder(_)) {
            return Err(unsupported("a parameter in the simple protocol"));
        }
        if this == "ARRAY" || matches!(tokens[at], Token::LBracket) {
            return Err(unsupported("ARRAY"));
        }
        if next == "(" && FUNCTIONS.contains(&this) {
            let message = format!("function {}() does not exist", this.to_lowercase());
            return Err(Refusal::new("42883", message));
        }
        if next != "(" && TYPES.contains(&this) {
            return Err(Refusal::new(
                "42704",
                format!("type \"{}\" does not exist", this.to_lowercase()),
            ));
        }
        if ["SET", "LOCAL", "SESSION"].contains(&before) && SETTINGS.contains(&this) {
            let message =
                format!("unrecognized configuration parameter \"{}\"", this.to_lowercase());
            return Err(Refusal::new("42704", message));
        }
        if ["NUMERIC", "DECIMAL"].contains(&this)
            && next == "("
            && let Some(Token::Number(digits, _)) = tokens.get(at + 2)
            && digits.parse::<u64>().is_ok_and(|digits| digits > MAX_DIGITS)
        {
            let message = format!("DECIMAL precision {digits} must be between 1 and {MAX_DIGITS}");
            return Err(Refusal::new("22023", message));
        }
    }
    Ok(())
}

/// `LOCK [TABLE] name`, without a mode.
fn lock_of(tokens: &[Token]) -> Result<String, Refusal> {
    let names = tokens[1..].iter().filter(|token| word(Some(token)) != "TABLE");
    let names: Vec<String> = names.map(ToString::to_string).collect();
    match names.as_slice() {
        [name] => Ok(format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")),
        _ => Err(Refusal::new("42601", "syntax error: LOCK [ TABLE ] table_name")),
    }
}

/// The only form of COPY that is carried out.
fn copy_of(tokens: &[Token]) -> Result<Copy, Refusal> {
    let refuse = || {
        let right =
            "COPY table FROM 's3://…' IAM_ROLE { default | 'arn' } FORMAT [ AS ] PARQUET MANIFEST";
        Refusal::new("42601", format!("syntax error: {right}"))
    };
    let words: Vec<String> = tokens.iter().map(|token| word(Some(token))).collect();
    let text = |at: usize| match tokens.get(at) {
        Some(Token::SingleQuotedString(text)) => Some(text.clone()),
        _ => None,
    };
    let role = text(5).filter(|role| role.starts_with("arn:aws:iam::"));
    let is_role = role.is_some() || words.get(5).is_some_and(|role| role == "DEFAULT");
    let manifest = text(3).filter(|url| url.starts_with("s3://"));
    let rest: Vec<&str> =
        words.iter().skip(6).map(String::as_str).filter(|word| *word != "AS").collect();
    let words = |at: usize| words.get(at).map_or("", String::as_str);
    let is_right = words(2) == "FROM" && words(4) == "IAM_ROLE" && is_role;
    match (tokens.get(1), manifest) {
        (Some(Token::Word(table)), Some(manifest))
            if is_right && rest == ["FORMAT", "PARQUET", "MANIFEST"] =>
        {
            Ok(Copy { table: table.value.clone(), manifest })
        }
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(sql: &str) -> String {
        check(sql).err().map(|refusal| refusal.message).unwrap_or_default()
    }

    #[test]
    fn what_redshift_lacks_is_refused() {
        for (sql, expected) in [
            ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "ON CONFLICT"),
            ("INSERT INTO t VALUES (1) RETURNING a", "RETURNING"),
            ("SELECT * FROM unnest('{1}')", "unnest()"),
            ("SELECT a FROM t FOR UPDATE", "FOR UPDATE"),
            ("SELECT a FROM t FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
            ("CREATE TEMPORARY TABLE t (a bigint) ON COMMIT DROP", "ON COMMIT"),
            ("SELECT a IS NOT DISTINCT FROM b FROM t", "IS NOT DISTINCT FROM"),
            ("SELECT DISTINCT ON (a) a FROM t", "DISTINCT ON"),
            ("CREATE INDEX i ON t (a)", "CREATE INDEX"),
            ("CREATE TABLE t (a uuid)", "\"uuid\""),
            ("CREATE TABLE t (a jsonb)", "\"jsonb\""),
            ("CREATE TABLE t (a bytea)", "\"bytea\""),
            ("CREATE TABLE t (a bigserial)", "\"bigserial\""),
            ("CREATE TABLE t (a integer[])", "ARRAY"),
            ("CREATE TABLE t (a numeric(60,2))", "DECIMAL precision 60"),
            ("CREATE TABLE t (a integer CHECK (a > 0))", "CHECK"),
            ("SELECT ARRAY[1]", "ARRAY"),
            ("SELECT to_regclass('t')", "to_regclass()"),
            ("SELECT clock_timestamp()", "clock_timestamp()"),
            ("SELECT string_agg(a, ',') FROM t", "string_agg()"),
            ("SELECT pg_advisory_xact_lock(1)", "pg_advisory_xact_lock()"),
            ("SELECT count(*) FILTER (WHERE a > 1) FROM t", "FILTER"),
            ("BEGIN; SET LOCAL synchronous_commit = on", "synchronous_commit"),
            ("SET lock_timeout = '5s'", "lock_timeout"),
            ("LISTEN windlass", "LISTEN"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("COPY t FROM STDIN", "COPY FROM STDIN"),
            ("COPY t FROM 's3://b/m' IAM_ROLE 'x' FORMAT AS PARQUET MANIFEST", "syntax error"),
            (
                "COPY t (a) FROM 's3://b/m' IAM_ROLE default FORMAT AS PARQUET MANIFEST",
                "syntax error",
            ),
            ("LOCK t IN SHARE MODE", "syntax error"),
            ("SELECT $1", "parameter"),
            ("SELECT; COMMIT", "syntax error"),
            ("SELEC 1", "syntax error"),
        ] {
            let found = refused(sql);
            assert!(found.contains(expected), "{sql}: `{expected}` is not in `{found}`");
        }
    }

    #[test]
    fn what_redshift_has_is_accepted() {
        for sql in [
            "BEGIN; SET LOCAL statement_timeout TO 60000",
            "LOCK windlass_ledger",
            "CREATE TEMP TABLE s (a bigint, b varchar(65535), c numeric(38,2))",
            "COPY s FROM 's3://b/m' IAM_ROLE 'arn:aws:iam::1:role/r' FORMAT AS PARQUET MANIFEST",
            "COPY s FROM 's3://b/m' IAM_ROLE default FORMAT PARQUET MANIFEST",
            "DELETE FROM t USING s WHERE (t.a = s.a OR (t.a IS NULL AND s.a IS NULL))",
            "INSERT INTO t (a) SELECT CAST(s.a AS integer) FROM s",
            "UPDATE t SET a = 1 WHERE b = 'O''Hara \\\\ x'",
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()",
            "DROP TABLE s",
            "COMMIT",
            "ROLLBACK",
        ] {
            assert_eq!(refused(sql), "", "{sql}");
        }
    }

    #[test]
    fn keys_are_not_enforced() {
        let sql = "CREATE TABLE t (a bigint NOT NULL UNIQUE, PRIMARY KEY (a))";
        let Ok(Checked::Statements(text)) = check(sql) else { panic!("refused") };
        assert_eq!(text, "CREATE TABLE t (a BIGINT NOT NULL)");
    }
}
