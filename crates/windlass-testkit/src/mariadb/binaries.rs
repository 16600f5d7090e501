//! The programs of MariaDB or MySQL.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;

/// The installation the tests use.
pub(super) struct Binaries {
    pub(super) product: Product,
    server: PathBuf,
    /// The program that initialises a data folder.
    install: PathBuf,
    pub(super) account: Account,
}

/// Whose server it is. The two differ in options, authentication and replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    Mariadb,
    Mysql,
}

impl Binaries {
    /// Searches `WINDLASS_MYSQL_BIN`, which may hold MySQL's `mysqld` or MariaDB's programs. Without it, searches
    /// PATH and /usr/sbin, which Debian puts only on root's PATH, for MariaDB's programs.
    pub(super) fn find() -> Self {
        let folder = env::var_os("WINDLASS_MYSQL_BIN").map(PathBuf::from);
        let account = Account::find();
        if let Some(server) = folder.as_ref().map(|folder| folder.join("mysqld"))
            && server.is_file()
        {
            return Self { product: Product::Mysql, install: server.clone(), server, account };
        }
        let find = |program: &str| {
            let path = env::var_os("PATH").unwrap_or_default();
            let mut folders: Vec<PathBuf> = folder.iter().cloned().collect();
            if folders.is_empty() {
                folders.extend(env::split_paths(&path).chain(["/usr/sbin".into()]));
            }
            let found = folders.iter().find(|folder| folder.join(program).is_file());
            found.map(|folder| folder.join(program)).unwrap_or_else(|| {
                panic!(
                    "MariaDB's {program} is needed: install it (Debian: mariadb-server-core and \
                     mariadb-client-core); WINDLASS_MYSQL_BIN may name its folder"
                )
            })
        };
        let (server, install) = (find("mariadbd"), find("mariadb-install-db"));
        Self { product: Product::Mariadb, server, install, account }
    }

    /// The server program, with its user and its working folder set.
    pub(super) fn server(&self, folder: &Path) -> Command {
        self.account.command(&self.server, folder)
    }

    /// The command that creates a data folder.
    pub(super) fn install(&self, folder: &Path, data: &Path) -> Command {
        let mut command = self.account.command(&self.install, folder);
        command.arg("--no-defaults").args(match self.product {
            Product::Mariadb => [
                "--skip-test-db",
                "--innodb-log-file-size=8M",
                "--auth-root-authentication-method=normal",
            ],
            Product::Mysql => [
                "--initialize-insecure",
                "--innodb-redo-log-capacity=32M",
                "--innodb-flush-method=nosync",
            ],
        });
        command.arg(format!("--datadir={}", data.display()));
        command
    }

    /// The product and its version in digits, such as `mariadb-10.11.6`.
    pub(super) fn version(&self) -> String {
        let output = Command::new(&self.server).arg("--version").output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", self.server.display()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_whitespace().find(|word| word.starts_with(char::is_numeric));
        let version = version.expect("`--version` prints no version");
        let product = match self.product {
            Product::Mariadb => "mariadb",
            Product::Mysql => "mysql",
        };
        format!("{product}-{}", version.split('-').next().unwrap_or(version))
    }

    /// The options in which the two products differ. Without the last one, newer servers create certificates and
    /// offer TLS, as older ones do not; a proxy that reads the protocol needs plain text.
    pub(super) fn options(&self, has_tls: bool) -> Vec<&'static str> {
        let (mut options, no_tls) = match self.product {
            Product::Mariadb => (
                vec![
                    "--max-recursive-iterations=4294967295",
                    "--innodb-log-file-size=8M",
                    "--debug-no-sync",
                ],
                "--skip-ssl",
            ),
            Product::Mysql => (
                vec![
                    "--cte-max-recursion-depth=4294967295",
                    "--innodb-redo-log-capacity=32M",
                    "--innodb-flush-method=nosync",
                    "--mysqlx=OFF",
                    "--performance-schema=OFF",
                    "--skip-log-bin",
                ],
                "--tls-version=",
            ),
        };
        if !has_tls {
            options.push(no_tls);
        }
        options
    }
}
