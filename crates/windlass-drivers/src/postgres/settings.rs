//! Connection settings from a URL, with defaults that detect a dead server.

use std::time::Duration;

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::tls::{self, Tls};
use crate::{
    Error, ErrorClass,
    security::{Mode, Parts, take_security},
    url::{password_hint, query_start},
};

/// The settings of new connections.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// Covers the whole handshake, since a server may accept and then not answer.
    pub(super) connect_timeout: Duration,
    /// Host, port, database and user, for messages.
    server: String,
    hint: &'static str,
}

impl Settings {
    /// Names the server in the error of a connection that could not be made.
    pub(super) fn connect_error(&self, error: Error) -> Error {
        error.connecting(&self.server, self.hint)
    }

    /// Parses the URL of Redshift, which differs in its scheme and its default port.
    pub(super) fn parse_redshift(url: &str) -> Result<Settings, Error> {
        let rest = url.trim().strip_prefix("redshift://").unwrap_or_default();
        let named = |error: Error| {
            let message = error.message.replace("postgres://", "redshift://");
            Error { message: message.replace("PostgreSQL", "Redshift"), ..error }
        };
        Settings::parse(&format!("postgres://{}", with_port(rest))).map_err(named)
    }

    pub(super) fn parse(url: &str) -> Result<Settings, Error> {
        let Parts { address, security, given } = take_security(url)?;
        let hint = password_hint(url);
        let plain = match given.is_empty() {
            true => address.to_owned(),
            false => {
                let pairs = given.iter().map(|(name, value)| format!("{name}={value}"));
                format!("{address}?{}", pairs.collect::<Vec<_>>().join("&"))
            }
        };
        let mut config: Config = plain.parse().map_err(|error| {
            let error = Error::from(error);
            Error::new(
                ErrorClass::Definition,
                format!("the PostgreSQL URL is not valid: {}{hint}", error.message),
            )
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(Error::new(
                ErrorClass::Definition,
                "the PostgreSQL URL names no host; write postgres://USER:PASSWORD@HOST:PORT/DATABASE",
            ));
        }
        let unset = |name: &str| !given.iter().any(|(key, _)| *key == name);
        if unset("application_name") {
            config.application_name("windlass");
        }
        if unset("connect_timeout") {
            config.connect_timeout(Duration::from_secs(5));
        }
        if unset("keepalives_idle") {
            config.keepalives_idle(Duration::from_secs(30));
        }
        if unset("keepalives_interval") {
            config.keepalives_interval(Duration::from_secs(10));
        }
        if unset("keepalives_retries") {
            config.keepalives_retries(3);
        }
        config.ssl_mode(match security.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require => SslMode::Require,
        });
        // As in libpq: a Unix socket needs no TLS, and servers refuse it there.
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        let tls = tls::connector(security)?;
        let connect_timeout = connect_timeout(&config);
        let server = server(&config);
        Ok(Settings { config, tls, connect_timeout, server, hint })
    }
}

/// The default port of Redshift.
const REDSHIFT_PORT: u16 = 5439;

/// The rest of a URL with the default port after its host, if it names none.
fn with_port(rest: &str) -> String {
    let (address, query) = rest.split_at(query_start(rest));
    let start = address.rfind('@').map_or(0, |at| at + 1);
    let end = address[start..].find('/').map_or(address.len(), |slash| start + slash);
    let host = &address[start..end];
    let has_port = host.rsplit(']').next().is_some_and(|after| after.contains(':'));
    if host.is_empty() || has_port || query.contains("port=") {
        return rest.to_owned();
    }
    format!("{}:{REDSHIFT_PORT}{}{query}", &address[..end], &address[end..])
}

/// Hosts, ports, database and user.
fn server(config: &Config) -> String {
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    };
    let hosts: Vec<String> = match config.get_hosts() {
        [] => config.get_hostaddrs().iter().map(ToString::to_string).collect(),
        hosts => hosts.iter().map(name).collect(),
    };
    let ports: Vec<String> = match config.get_ports() {
        [] => vec!["5432".to_owned()],
        ports => ports.iter().map(ToString::to_string).collect(),
    };
    let user = config.get_user().unwrap_or_default();
    crate::url::server(
        &hosts.join(","),
        &ports.join(","),
        config.get_dbname().unwrap_or(user),
        user,
    )
}

/// The connect timeout of every host, and ten seconds for the login.
fn connect_timeout(config: &Config) -> Duration {
    let each = config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(60));
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
    each * u32::try_from(hosts).unwrap_or(u32::MAX) + Duration::from_secs(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_overrides_the_defaults() {
        let defaults = Settings::parse("postgres://u@h/d").unwrap().config;
        assert_eq!(defaults.get_application_name(), Some("windlass"));
        assert_eq!(defaults.get_connect_timeout(), Some(&Duration::from_secs(5)));
        assert_eq!(defaults.get_keepalives_idle(), Duration::from_secs(30));

        let url = "postgres://u@h/d?application_name=mine&connect_timeout=7&keepalives_idle=9";
        let given = Settings::parse(url).unwrap().config;
        assert_eq!(given.get_application_name(), Some("mine"));
        assert_eq!(given.get_connect_timeout(), Some(&Duration::from_secs(7)));
        assert_eq!(given.get_keepalives_idle(), Duration::from_secs(9));

        let socket = Settings::parse("postgres://u@%2Frun%2Fpg/d?sslmode=require").unwrap().config;
        assert_eq!(socket.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn redshift_has_its_own_default_port() {
        let ports = |url| Settings::parse_redshift(url).unwrap().config.get_ports().to_vec();
        assert_eq!(ports("redshift://u:p@h/d"), [5439]);
        assert_eq!(ports("redshift://u:p@h?sslmode=disable"), [5439]);
        assert_eq!(ports("redshift://u:p@h:5440/d?sslmode=disable"), [5440]);
        let Err(error) = Settings::parse_redshift("redshift:///d") else { panic!("no host") };
        assert!(error.message.contains("redshift://USER"), "{error}");
    }

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        for url in [
            "postgres://u:secret@h:port/d",
            "postgres://u:secret@h/d?nonsense=1",
            "postgres://u:secret@h/d?sslrootcert=/does/not/exist",
            "postgres://u:secret@h/d?sslcert=/does/not/exist&sslkey=/does/not/exist",
            "postgres://u:secret@h/d?sslmode=secret",
            "postgres:///d",
        ] {
            let Err(error) = Settings::parse(url) else { panic!("{url} was taken") };
            assert_eq!(error.class, ErrorClass::Definition, "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
