//! TLS settings from the parameters `sslmode`, `sslrootcert`, `sslcert` and `sslkey` of a URL.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::{Error, ErrorClass, url::query_start};

/// Whether a connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Never.
    Disable,
    /// If the server supports it.
    Prefer,
    /// Always.
    Require,
}

/// How the server's certificate is verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verify {
    /// Not at all.
    Nothing,
    /// The chain must end at a root. The name may differ.
    Chain,
    /// The chain and the name must match.
    Full,
}

/// The trusted root certificates.
pub(crate) enum Roots {
    /// Those of the system.
    System,
    /// Those of this file.
    File(PathBuf),
}

/// The TLS settings of a URL.
pub(crate) struct Security {
    pub(crate) mode: Mode,
    pub(crate) verify: Verify,
    pub(crate) roots: Roots,
    pub(crate) client: Option<ClientCertificate>,
}

/// The client certificate: two PEM files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientCertificate {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

/// A URL without its TLS parameters.
pub(crate) struct Parts<'a> {
    /// The URL before the parameters.
    pub(crate) address: &'a str,
    pub(crate) security: Security,
    /// The other parameters, name and value, not decoded.
    pub(crate) given: Vec<(&'a str, &'a str)>,
}

/// Removes the TLS parameters from a URL, since the client libraries support fewer of them than libpq.
pub(crate) fn take_security(url: &str) -> Result<Parts<'_>, Error> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (address, query) = url.split_at(start + query_start(&url[start..]));
    let mut given = Vec::new();
    let (mut sslmode, mut sslrootcert, mut sslcert, mut sslkey) = (None, None, None, None);
    for pair in query.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            // The second spelling is that of MySQL's own clients.
            "sslmode" | "ssl-mode" => sslmode = Some(decode(value)?),
            "sslrootcert" | "ssl-ca" => sslrootcert = Some(decode(value)?),
            "sslcert" | "ssl-cert" => sslcert = Some(decode(value)?),
            "sslkey" | "ssl-key" => sslkey = Some(decode(value)?),
            _ => given.push((name, value)),
        }
    }
    let sslmode = sslmode.map(|mode| mode.to_ascii_lowercase().replace('_', "-"));
    let [sslrootcert, sslcert, sslkey] =
        [sslrootcert, sslcert, sslkey].map(|file| file.filter(|file| !file.is_empty()));
    let client = match (sslcert, sslkey) {
        (Some(chain), Some(key)) => {
            Some(ClientCertificate { chain: chain.into(), key: key.into() })
        }
        (None, None) => None,
        _ => {
            return Err(Error::new(
                ErrorClass::Definition,
                "sslcert and sslkey in the database URL need each other: one names the client's \
                 certificate, the other its key",
            ));
        }
    };
    let security = Security { client, ..security(sslmode.as_deref(), sslrootcert)? };
    Ok(Parts { address, security, given })
}

fn security(sslmode: Option<&str>, sslrootcert: Option<String>) -> Result<Security, Error> {
    let system = sslrootcert.as_deref() == Some("system");
    let (mode, verify) = match sslmode {
        Some("disable" | "disabled") => (Mode::Disable, Verify::Nothing),
        // As in libpq: given roots make even the weak modes verify the chain. The system's roots sign
        // certificates for everyone, so they are useless without verifying the name.
        None if system => (Mode::Require, Verify::Full),
        Some("require" | "required" | "prefer" | "preferred" | "allow" | "verify-ca") if system => {
            return Err(Error::new(
                ErrorClass::Definition,
                "sslrootcert=system needs sslmode=verify-full in the database URL",
            ));
        }
        None | Some("allow" | "prefer" | "preferred") => {
            (Mode::Prefer, chain_if(sslrootcert.is_some()))
        }
        Some("require" | "required") => (Mode::Require, chain_if(sslrootcert.is_some())),
        Some("verify-ca") => (Mode::Require, Verify::Chain),
        Some("verify-full" | "verify-identity") => (Mode::Require, Verify::Full),
        Some(_) => {
            return Err(Error::new(
                ErrorClass::Definition,
                "sslmode in the database URL must be one of disable, allow, prefer, require, \
                 verify-ca, verify-full",
            ));
        }
    };
    let roots = match sslrootcert {
        Some(file) if !system => Roots::File(file.into()),
        _ => Roots::System,
    };
    Ok(Security { mode, verify, roots, client: None })
}

fn chain_if(roots_given: bool) -> Verify {
    if roots_given { Verify::Chain } else { Verify::Nothing }
}

/// Decodes the value of a URL parameter.
pub(crate) fn decode(value: &str) -> Result<String, Error> {
    percent_decode_str(value).decode_utf8().map(|text| text.into_owned()).map_err(|_| {
        Error::new(ErrorClass::Definition, "a parameter of the database URL is not valid UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_parameters_are_removed_from_the_url() {
        for (url, address, mode, verify, others) in [
            ("postgres://u:p@h/d", "postgres://u:p@h/d", Mode::Prefer, Verify::Nothing, 0),
            (
                "postgres://h/d?sslmode=require&a=b",
                "postgres://h/d",
                Mode::Require,
                Verify::Nothing,
                1,
            ),
            (
                "postgres://h/d?a=b&sslmode=require&sslrootcert=%2Fca.pem",
                "postgres://h/d",
                Mode::Require,
                Verify::Chain,
                1,
            ),
            ("postgres://h?sslmode=verify-full", "postgres://h", Mode::Require, Verify::Full, 0),
            ("mysql://h?ssl-mode=VERIFY_IDENTITY", "mysql://h", Mode::Require, Verify::Full, 0),
            ("mysql://h?ssl-mode=REQUIRED&ssl-ca=/c", "mysql://h", Mode::Require, Verify::Chain, 0),
            ("postgres://h?sslmode=verify-ca", "postgres://h", Mode::Require, Verify::Chain, 0),
            ("postgres://h?sslmode=disable", "postgres://h", Mode::Disable, Verify::Nothing, 0),
            ("postgres://h?sslrootcert=system", "postgres://h", Mode::Require, Verify::Full, 0),
        ] {
            let Parts { address: plain, security, given } = take_security(url).unwrap();
            assert_eq!(
                (plain, security.mode, security.verify, given.len()),
                (address, mode, verify, others),
                "{url}"
            );
        }
        let url = "postgres://h?sslcert=/c.pem&a=b&sslkey=/k%20.pem";
        let Parts { security, given, .. } = take_security(url).unwrap();
        let client = ClientCertificate { chain: "/c.pem".into(), key: "/k .pem".into() };
        assert_eq!((security.client, given.len()), (Some(client), 1));
        assert!(take_security("postgres://h?sslcert=/c.pem").is_err());
        assert!(take_security("postgres://h?sslmode=sure").is_err());
        assert!(take_security("postgres://h?sslmode=require&sslrootcert=system").is_err());
    }
}
