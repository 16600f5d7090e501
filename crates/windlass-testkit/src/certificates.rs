//! Certificates for TLS servers, valid from 2020 to 2129. The key of their CA was deleted.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::PathBuf;

use crate::account::Account;
use crate::folder::Folder;

const FILES: [(&str, &str); 6] = [
    ("ca.pem", include_str!("certificates/ca.pem")),
    ("other-ca.pem", include_str!("certificates/other-ca.pem")),
    ("server.pem", include_str!("certificates/server.pem")),
    ("server.key", include_str!("certificates/server.key")),
    ("client.pem", include_str!("certificates/client.pem")),
    ("client.key", include_str!("certificates/client.key")),
];

/// A folder of PEM files for a test server: `ca.pem`, `other-ca.pem` (a CA that signed none of the others),
/// `server.pem` and `server.key` for the host name `localhost`, `client.pem` and `client.key` for the user
/// `clerk`.
pub struct Certificates(Folder);

impl Certificates {
    /// Writes the files, readable only by the user that servers run as.
    pub fn create() -> Self {
        let account = Account::find();
        let certificates = Self(Folder::create(account));
        for (name, text) in FILES {
            certificates.add(name, text);
        }
        certificates
    }

    /// Adds a file for the server, such as a `pg_hba.conf`.
    pub fn add(&self, name: &str, text: &str) -> PathBuf {
        let account = Account::find();
        let path = self.path(name);
        // PostgreSQL refuses a key file that other users may read.
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        std::io::Write::write_all(&mut file.expect("failed to create a file"), text.as_bytes())
            .expect("failed to write a file");
        chown(&path, Some(account.uid), Some(account.gid))
            .expect("failed to change the owner of a file");
        path
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
