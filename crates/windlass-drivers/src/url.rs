//! Parses database URLs, and redacts their passwords.

use std::path::PathBuf;

use crate::{Error, ErrorClass};

/// The URL of a database.
#[derive(Clone, PartialEq, Eq)]
pub enum Url {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server. The text is the whole URL with its password.
    Postgres(String),
    /// A MySQL or MariaDB server. The text is the whole URL with its password.
    Mysql(String),
    /// DynamoDB. The text is the whole URL, which may contain a secret key.
    Dynamodb(String),
    /// Amazon Redshift. The text is the whole URL with its password.
    Redshift(String),
}

impl Url {
    /// Parses `sqlite:PATH`, `sqlite://PATH`, `postgres://…`, `postgresql://…`, `mysql://…`,
    /// `mariadb://…`, `dynamodb://…` and `redshift://…`.
    pub fn parse(text: &str) -> Result<Url, Error> {
        let text = text.trim();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Url::Postgres(text.to_owned()));
        }
        if text.starts_with("mysql://") || text.starts_with("mariadb://") {
            return Ok(Url::Mysql(text.to_owned()));
        }
        if text.starts_with("dynamodb://") {
            return Ok(Url::Dynamodb(text.to_owned()));
        }
        if text.starts_with("redshift://") {
            return Ok(Url::Redshift(text.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("sqlite:") {
            return sqlite_path(rest.strip_prefix("//").unwrap_or(rest)).map(Url::Sqlite);
        }
        // The message does not repeat the text, since redaction may miss a password in a mistyped URL.
        let found = match text.split_once(':') {
            Some((scheme, _)) if is_scheme(scheme) => {
                format!("unknown database scheme `{scheme}:`")
            }
            _ if text.is_empty() => "the database URL is empty".to_owned(),
            _ => "this is not a database URL".to_owned(),
        };
        Err(invalid(format!("{found}; {EXPECTED}")))
    }
}

/// Prints the URL without its password, so that a logged configuration cannot leak it.
impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Url::Sqlite(path) => write!(f, "Sqlite({})", path.display()),
            Url::Postgres(url) => write!(f, "Postgres({})", redact(url)),
            Url::Mysql(url) => write!(f, "Mysql({})", redact(url)),
            Url::Dynamodb(url) => write!(f, "Dynamodb({})", redact(url)),
            Url::Redshift(url) => write!(f, "Redshift({})", redact(url)),
        }
    }
}

/// Replaces the password of a URL by `***`, including one given as a `password=` parameter.
pub fn redact(url: &str) -> String {
    hide_parameters(&hide_credentials(url))
}

const EXPECTED: &str = "write sqlite:PATH (for example sqlite:windlass.db), \
                        postgres://USER:PASSWORD@HOST:PORT/DATABASE, \
                        mysql://USER:PASSWORD@HOST:PORT/DATABASE, dynamodb://REGION \
                        or redshift://USER:PASSWORD@HOST:PORT/DATABASE";

const HIDDEN: &str = "***";

fn sqlite_path(path: &str) -> Result<PathBuf, Error> {
    if path.is_empty() {
        return Err(invalid("the SQLite URL names no file; write sqlite:PATH".to_owned()));
    }
    if path.contains(":memory:") {
        return Err(invalid(
            "an in-memory SQLite database would be lost with the process; write sqlite:PATH"
                .to_owned(),
        ));
    }
    Ok(PathBuf::from(path))
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorClass::Definition, message)
}

fn hide_credentials(url: &str) -> String {
    let Some(start) = url.find("://").map(|at| at + 3) else {
        return url.to_owned();
    };
    let (scheme, rest) = url.split_at(start);
    let (address, query) = rest.split_at(query_start(rest));
    // The last @ ends the credentials, since a password may contain one that is not encoded.
    let Some((credentials, host)) = address.rsplit_once('@') else {
        return url.to_owned();
    };
    match credentials.split_once(':') {
        Some((user, _)) => format!("{scheme}{user}:{HIDDEN}@{host}{query}"),
        None => url.to_owned(),
    }
}

/// A server in a message.
pub(crate) fn server(host: &str, port: &str, database: &str, user: &str) -> String {
    format!("host {host}, port {port}, database `{database}` as user `{user}`")
}

/// A hint for a URL whose password has characters that end the password there, or `""`.
pub(crate) fn password_hint(url: &str) -> &'static str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let address = &rest[..query_start(rest)];
    let password = address
        .rsplit_once('@')
        .and_then(|(credentials, _)| credentials.split_once(':'))
        .map_or("", |(_, password)| password);
    let is_encoded = |at: usize| {
        let digits = password.get(at + 1..at + 3).unwrap_or_default();
        digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_special = |(at, c): (usize, char)| match c {
        '%' => !is_encoded(at),
        c => "@/?#[] ".contains(c),
    };
    match password.char_indices().any(is_special) {
        true => {
            "; the password in the URL has special characters: write @ as %40, / as %2F, ? as %3F, \
             # as %23 and % as %25"
        }
        false => "",
    }
}

/// The position of the first `?name=`. A bare question mark can be part of a password.
pub(crate) fn query_start(rest: &str) -> usize {
    rest.match_indices('?')
        .map(|(at, _)| at)
        .find(|at| {
            let name = rest[at + 1..].split('=').next().unwrap_or_default();
            let named = name.len() < rest.len() - at - 1;
            named && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        })
        .unwrap_or(rest.len())
}

fn hide_parameters(text: &str) -> String {
    const KEY: &str = "password=";
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = lower[at..].find(KEY) {
        let value = at + found + KEY.len();
        out.push_str(&text[at..value]);
        out.push_str(HIDDEN);
        at = text[value..]
            .find(|c: char| c == '&' || c.is_whitespace())
            .map_or(text.len(), |end| value + end);
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_schemes_are_parsed() {
        assert_eq!(Url::parse("sqlite:a/b.db").unwrap(), Url::Sqlite("a/b.db".into()));
        assert_eq!(Url::parse("sqlite:///tmp/b.db").unwrap(), Url::Sqlite("/tmp/b.db".into()));
        assert_eq!(Url::parse("sqlite:/tmp/b.db").unwrap(), Url::Sqlite("/tmp/b.db".into()));
        for url in ["postgres://u:p@h/d", "postgresql://h"] {
            assert_eq!(Url::parse(url).unwrap(), Url::Postgres(url.to_owned()));
        }
        for url in ["mysql://u:p@h/d", "mariadb://h/d"] {
            assert_eq!(Url::parse(url).unwrap(), Url::Mysql(url.to_owned()));
        }
        let url = "redshift://u:p@h/d";
        assert_eq!(Url::parse(url).unwrap(), Url::Redshift(url.to_owned()));
        let url = "dynamodb://eu-west-1";
        assert_eq!(Url::parse(url).unwrap(), Url::Dynamodb(url.to_owned()));
    }

    #[test]
    fn an_invalid_url_is_explained() {
        for url in
            ["oracle://u:secret@h/d", "", "windlass.db", "sqlite:", "sqlite::memory:", "u:secret@h"]
        {
            let error = Url::parse(url).unwrap_err();
            assert_eq!(error.class, ErrorClass::Definition);
            assert!(error.message.contains("sqlite:PATH"), "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }

    #[test]
    fn special_characters_in_a_password_are_hinted_at() {
        for password in ["p@ss", "p/ss", "p#ss", "p%ss", "p?ss", "100%"] {
            let hint = password_hint(&format!("postgres://u:{password}@h/d?sslmode=require"));
            assert!(hint.contains("%40"), "{password}");
        }
        for url in ["postgres://u:p%40ss@h/d", "mysql://u@h/d", "postgres://h/d", "sqlite:a.db"] {
            assert_eq!(password_hint(url), "", "{url}");
        }
    }

    #[test]
    fn passwords_are_redacted() {
        for (url, shown) in [
            ("postgres://u:secret@h:1/d", "postgres://u:***@h:1/d"),
            ("postgres://u:s@cr/et?x@h/d?sslmode=require", "postgres://u:***@h/d?sslmode=require"),
            ("postgres://u:a@b?c@h/d", "postgres://u:***@h/d"),
            (
                "postgres://h:1/d?user=u&password=secret&a=b",
                "postgres://h:1/d?user=u&password=***&a=b",
            ),
            ("postgres://u@h/d?sslPassword=secret", "postgres://u@h/d?sslPassword=***"),
            ("postgres://h/d", "postgres://h/d"),
            ("host=h password=secret user=u", "host=h password=*** user=u"),
            ("sqlite:a.db", "sqlite:a.db"),
        ] {
            assert_eq!(redact(url), shown);
        }
        let debug = format!("{:?}", Url::Mysql("mysql://u:secret@h/d".to_owned()));
        assert_eq!(debug, "Mysql(mysql://u:***@h/d)");
        let debug = format!("{:?}", Url::Redshift("redshift://u:secret@h/d".to_owned()));
        assert_eq!(debug, "Redshift(redshift://u:***@h/d)");
        let debug = format!("{:?}", Url::Dynamodb("dynamodb://key:secret@r".to_owned()));
        assert_eq!(debug, "Dynamodb(dynamodb://key:***@r)");
        let debug = format!("{:?}", Url::Postgres("postgres://u:secret@h/d".to_owned()));
        assert_eq!(debug, "Postgres(postgres://u:***@h/d)");
    }
}
