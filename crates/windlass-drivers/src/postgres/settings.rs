//! What a URL says of the connection, with defaults that notice a dead server.

use std::time::Duration;

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::tls::{self, Tls};
use crate::{
    Class, Error,
    security::{Mode, Parts, take_security},
};

/// Everything a new connection needs.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// Covers the whole way to a usable connection: a server can accept and then stay silent.
    pub(super) connect_timeout: Duration,
}

impl Settings {
    pub(super) fn parse(url: &str) -> Result<Settings, Error> {
        let Parts { address, security, given } = take_security(url)?;
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
                Class::Definition,
                format!("the PostgreSQL URL is not valid: {}", error.message),
            )
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(Error::new(
                Class::Definition,
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
        // As libpq does: nobody listens in on a Unix socket, and servers refuse TLS there.
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        let tls = tls::connector(security)?;
        let connect_timeout = connect_timeout(&config);
        Ok(Settings { config, tls, connect_timeout })
    }
}

/// Every host may take its time, and then the login has ten seconds.
fn connect_timeout(config: &Config) -> Duration {
    let each = config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(60));
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
    each * u32::try_from(hosts).unwrap_or(u32::MAX) + Duration::from_secs(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_give_way_to_the_url() {
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
            assert_eq!(error.class, Class::Definition, "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
