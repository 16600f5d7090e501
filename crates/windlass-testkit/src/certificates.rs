//! Certificates for servers that speak TLS. The key of their CA was deleted; they are valid from 2020 to 2129.

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

/// A folder of PEM files that a test server may read: `ca.pem`, `other-ca.pem` (which signed
/// nothing), `server.pem` and `server.key` for the name `localhost` alone, `client.pem` and
/// `client.key` for the user `clerk`.
pub struct Certificates(Folder);

impl Certificates {
    /// Writes the files, readable by the user that servers run as and by no other.
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
        // PostgreSQL refuses a key that others may read.
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        std::io::Write::write_all(&mut file.expect("a new file"), text.as_bytes())
            .expect("a file is written");
        chown(&path, Some(account.uid), Some(account.gid)).expect("a file can be given away");
        path
    }

    /// Where a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
