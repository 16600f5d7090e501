//! Connection settings from a URL, and the initial statements of every connection.

use std::{fs, path::PathBuf, time::Duration};

use mysql_async::{
    ClientIdentity, Conn, DriverError, Error as DriverFailure, IoError, Opts, OptsBuilder, SslOpts,
    UrlError,
};

use crate::{
    Error, ErrorClass,
    security::{ClientCertificate, Mode, Parts, Roots, Security, Verify, decode, take_security},
    url::{password_hint, server},
};

/// The settings of new connections.
pub(super) struct Settings {
    /// With TLS, unless it is disabled.
    secure: Option<Opts>,
    /// Without TLS, unless it is required.
    plain: Option<Opts>,
    connect_timeout: Duration,
    /// Host, port, database and user, for messages.
    server: String,
    hint: &'static str,
}

impl Settings {
    pub(super) fn parse(url: &str) -> Result<Settings, Error> {
        let Parts { address, security, given } = take_security(url)?;
        let address = match address.strip_prefix("mariadb://") {
            Some(rest) => format!("mysql://{rest}"),
            None => address.to_owned(),
        };
        let hint = password_hint(url);
        let opts = Opts::from_url(&address).map_err(|error| {
            let error = unreadable(error);
            Error { message: format!("{}{hint}", error.message), ..error }
        })?;
        let server = server(
            opts.ip_or_hostname(),
            &opts.tcp_port().to_string(),
            opts.db_name().unwrap_or_default(),
            opts.user().unwrap_or_default(),
        );
        if opts.db_name().is_none_or(str::is_empty) {
            return Err(invalid(
                "the MySQL URL names no database; write mysql://USER:PASSWORD@HOST:PORT/DATABASE",
            ));
        }
        let mut builder = OptsBuilder::from_opts(opts)
            // Count matched rows instead of changed rows.
            .client_found_rows(true)
            // Otherwise the library would switch to the server's socket and bypass a proxy.
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(30)))
            .stmt_cache_size(STATEMENT_CACHE_SIZE)
            .connect_attribute("program_name", "windlass")
            .init(INIT_STATEMENTS.to_vec());
        let (mut connect_timeout, mut on_socket) = (Duration::from_secs(15), false);
        for (name, value) in given {
            match name {
                "socket" => {
                    builder = builder.socket(Some(decode(value)?));
                    on_socket = true;
                }
                "connect_timeout" => {
                    let seconds = value.parse().map_err(|_| {
                        invalid("connect_timeout in the MySQL URL must be a number of seconds")
                    })?;
                    connect_timeout = Duration::from_secs(seconds);
                }
                _ => {
                    return Err(invalid(format!(
                        "the MySQL URL has an unknown parameter `{name}`; the known ones are sslmode, \
                         sslrootcert, sslcert, sslkey, socket, connect_timeout"
                    )));
                }
            }
        }
        // A Unix socket needs no TLS.
        let mode = if on_socket { Mode::Disable } else { security.mode };
        let secure = match mode {
            Mode::Disable => None,
            Mode::Prefer | Mode::Require => Some(builder.clone().ssl_opts(tls(security)?).into()),
        };
        let plain = (mode != Mode::Require).then(|| builder.into());
        Ok(Settings { secure, plain, connect_timeout, server, hint })
    }

    /// Connects. The timeout covers the whole handshake, since a server may accept and then not answer.
    pub(super) async fn connect(&self) -> Result<Conn, Error> {
        let connected = match tokio::time::timeout(self.connect_timeout, self.reach()).await {
            Ok(connected) => connected.map_err(Error::from),
            Err(_) => {
                Err(Error::new(ErrorClass::Connection, "timed out connecting to the database"))
            }
        };
        connected.map_err(|error| error.connecting(&self.server, self.hint))
    }

    async fn reach(&self) -> Result<Conn, DriverFailure> {
        if let Some(secure) = &self.secure {
            match (Conn::new(secure.clone()).await, &self.plain) {
                (Err(failure), Some(_)) if is_about_tls(&failure) => {}
                (outcome, _) => return outcome,
            }
        }
        match &self.plain {
            Some(plain) => Conn::new(plain.clone()).await,
            None => Err(DriverError::NoClientSslFlagFromServer.into()),
        }
    }
}

/// The most prepared statements of a connection.
const STATEMENT_CACHE_SIZE: usize = 64;

/// The initial statements of every connection. Times are UTC, so that a timestamp always has the same text.
/// Values that do not fit and invalid dates are refused. Sorting compares as many bytes as a key can have; by default
/// the order of texts with the same first 1024 bytes is undefined. READ COMMITTED avoids gap locks, on which chunks
/// would wait for each other.
const INIT_STATEMENTS: [&str; 2] = [
    "SET SESSION time_zone = '+00:00', autocommit = 1, max_sort_length = 32768, \
     sort_buffer_size = CAST(GREATEST(@@sort_buffer_size, 1048576) AS UNSIGNED), sql_mode = \
     CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE') \
     /*!80000 , information_schema_stats_expiry = 0 */",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
];

/// As in libpq, preferred TLS falls back to a plain connection.
fn is_about_tls(failure: &DriverFailure) -> bool {
    matches!(
        failure,
        DriverFailure::Driver(DriverError::NoClientSslFlagFromServer)
            | DriverFailure::Io(IoError::Tls(_))
    )
}

fn tls(security: Security) -> Result<SslOpts, Error> {
    let identity = match security.client {
        Some(ClientCertificate { chain, key }) => Some(ClientIdentity::new(
            readable("sslcert", chain)?.into(),
            readable("sslkey", key)?.into(),
        )),
        None => None,
    };
    let options = SslOpts::default().with_client_identity(identity);
    let options = match security.verify {
        // The library needs roots even if it does not verify, so it keeps its defaults.
        Verify::Nothing => {
            return Ok(options
                .with_danger_accept_invalid_certs(true)
                .with_danger_skip_domain_validation(true));
        }
        Verify::Chain => options.with_danger_skip_domain_validation(true),
        Verify::Full => options,
    };
    let roots = match security.roots {
        Roots::File(path) => vec![readable("sslrootcert", path)?],
        Roots::System => {
            let found = rustls_native_certs::load_native_certs().certs;
            found.into_iter().map(|root| root.to_vec()).collect()
        }
    };
    let roots = roots.into_iter().map(Into::into).collect();
    Ok(options.with_disable_built_in_roots(true).with_root_certs(roots))
}

fn readable(what: &str, path: PathBuf) -> Result<Vec<u8>, Error> {
    fs::read(&path)
        .map_err(|error| invalid(format!("{what} {} cannot be used: {error}", path.display())))
}

/// Does not repeat the library's message, which may contain parts of a mistyped URL and so a password.
fn unreadable(error: UrlError) -> Error {
    let what = match error {
        UrlError::Parse(error) => error.to_string(),
        _ => "write mysql://USER:PASSWORD@HOST:PORT/DATABASE".to_owned(),
    };
    invalid(format!("the MySQL URL is not valid: {what}"))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorClass::Definition, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let settings = Settings::parse("mysql://u:p%40w@h:3307/d?sslmode=disable").unwrap();
        assert!(settings.secure.is_none());
        let opts = settings.plain.unwrap();
        assert_eq!((opts.ip_or_hostname(), opts.tcp_port()), ("h", 3307));
        assert_eq!((opts.user(), opts.pass(), opts.db_name()), (Some("u"), Some("p@w"), Some("d")));
        assert!(opts.client_found_rows() && !opts.prefer_socket());

        let settings = Settings::parse("mariadb://u@h/d").unwrap();
        assert!(settings.secure.is_some() && settings.plain.is_some());
        let settings = Settings::parse("mysql://u@h/d?ssl-mode=REQUIRED").unwrap();
        assert!(settings.secure.is_some() && settings.plain.is_none());
        let settings = Settings::parse("mysql://u@localhost/d?socket=%2Frun%2Fs&sslmode=require");
        let settings = settings.unwrap();
        assert!(settings.secure.is_none());
        assert_eq!(settings.plain.unwrap().socket(), Some("/run/s"));
    }

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        for url in [
            "mysql://u:secret@h:port/d",
            "mysql://u:secret@h/d?nonsense=1",
            "mysql://u:secret@h/d?sslmode=secret",
            "mysql://u:secret@h/d?sslmode=verify-full&sslrootcert=/does/not/exist",
            "mysql://u:secret@h/d?connect_timeout=secret",
            "mysql://u:secret@h",
        ] {
            let Err(error) = Settings::parse(url) else { panic!("{url} was taken") };
            assert_eq!(error.class, ErrorClass::Definition, "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
