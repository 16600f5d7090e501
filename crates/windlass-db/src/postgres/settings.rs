//! What a URL says of the connection, with defaults that notice a dead server.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::tls::{self, Roots, Tls, Verify};
use crate::{Class, Error, url::query_start};

/// Everything a new connection needs.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// Covers the whole way to a usable connection: a server can accept and then stay silent.
    pub(super) connect_timeout: Duration,
}

impl Settings {
    pub(super) fn parse(url: &str) -> Result<Settings, Error> {
        let (plain, security, given) = take_security(url)?;
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
        let unset = |name: &str| !given.iter().any(|key| key == name);
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
        config.ssl_mode(security.mode);
        // As libpq does: nobody listens in on a Unix socket, and servers refuse TLS there.
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        let tls = tls::connector(security.verify, security.roots)?;
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

struct Security {
    mode: SslMode,
    verify: Verify,
    roots: Roots,
}

/// Takes `sslmode` and `sslrootcert` out of the URL, since the client library knows less of them
/// than libpq does, and gives the names of the parameters that were there.
fn take_security(url: &str) -> Result<(String, Security, Vec<String>), Error> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (address, query) = url.split_at(start + query_start(&url[start..]));
    let (mut kept, mut given) = (Vec::new(), Vec::new());
    let (mut sslmode, mut sslrootcert) = (None, None);
    for pair in query.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "sslmode" => sslmode = Some(decode(value)?),
            "sslrootcert" => sslrootcert = Some(decode(value)?),
            _ => {
                kept.push(pair);
                given.push(name.to_owned());
            }
        }
    }
    let security = security(sslmode.as_deref(), sslrootcert.filter(|file| !file.is_empty()))?;
    let plain = match kept.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", kept.join("&")),
    };
    Ok((plain, security, given))
}

fn security(sslmode: Option<&str>, sslrootcert: Option<String>) -> Result<Security, Error> {
    let system = sslrootcert.as_deref() == Some("system");
    let (mode, verify) = match sslmode {
        Some("disable") => (SslMode::Disable, Verify::Nothing),
        // libpq: roots make even the weak modes look at the chain, and the system's roots, which
        // anybody can get a certificate from, are of no use without the name.
        None if system => (SslMode::Require, Verify::Full),
        Some("require" | "prefer" | "allow" | "verify-ca") if system => {
            return Err(Error::new(
                Class::Definition,
                "sslrootcert=system needs sslmode=verify-full in the PostgreSQL URL",
            ));
        }
        None | Some("allow" | "prefer") => (SslMode::Prefer, chain_if(sslrootcert.is_some())),
        Some("require") => (SslMode::Require, chain_if(sslrootcert.is_some())),
        Some("verify-ca") => (SslMode::Require, Verify::Chain),
        Some("verify-full") => (SslMode::Require, Verify::Full),
        Some(_) => {
            return Err(Error::new(
                Class::Definition,
                "sslmode in the PostgreSQL URL is not one of disable, allow, prefer, require, \
                 verify-ca, verify-full",
            ));
        }
    };
    let roots = match sslrootcert {
        Some(file) if !system => Roots::File(file.into()),
        _ => Roots::System,
    };
    Ok(Security { mode, verify, roots })
}

fn chain_if(roots_given: bool) -> Verify {
    if roots_given { Verify::Chain } else { Verify::Nothing }
}

fn decode(value: &str) -> Result<String, Error> {
    percent_decode_str(value).decode_utf8().map(|text| text.into_owned()).map_err(|_| {
        Error::new(Class::Definition, "a parameter of the PostgreSQL URL is not valid UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(url: &str) -> (String, SslMode, Verify) {
        let (plain, security, _) = take_security(url).unwrap();
        (plain, security.mode, security.verify)
    }

    #[test]
    fn security_is_taken_out_of_the_url() {
        let plain = |text: &str| text.to_owned();
        for (url, expected) in [
            ("postgres://u:p@h/d", (plain("postgres://u:p@h/d"), SslMode::Prefer, Verify::Nothing)),
            (
                "postgres://h/d?sslmode=require&a=b",
                (plain("postgres://h/d?a=b"), SslMode::Require, Verify::Nothing),
            ),
            (
                "postgres://h/d?a=b&sslmode=require&sslrootcert=%2Fca.pem",
                (plain("postgres://h/d?a=b"), SslMode::Require, Verify::Chain),
            ),
            (
                "postgres://h?sslmode=verify-full",
                (plain("postgres://h"), SslMode::Require, Verify::Full),
            ),
            (
                "postgres://h?sslmode=verify-ca",
                (plain("postgres://h"), SslMode::Require, Verify::Chain),
            ),
            (
                "postgres://h?sslmode=disable",
                (plain("postgres://h"), SslMode::Disable, Verify::Nothing),
            ),
            (
                "postgres://h?sslrootcert=system",
                (plain("postgres://h"), SslMode::Require, Verify::Full),
            ),
        ] {
            assert_eq!(taken(url), expected, "{url}");
        }
        assert!(take_security("postgres://h?sslmode=sure").is_err());
        assert!(take_security("postgres://h?sslmode=require&sslrootcert=system").is_err());
    }

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
            "postgres://u:secret@h/d?sslmode=secret",
            "postgres:///d",
        ] {
            let Err(error) = Settings::parse(url) else { panic!("{url} was taken") };
            assert_eq!(error.class, Class::Definition, "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
