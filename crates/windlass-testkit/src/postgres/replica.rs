//! A standby that streams from another server of ours.

use super::{Binaries, Database, Folder, PostgresServer, USER};

impl PostgresServer {
    /// A streaming replica of this server, as it is now and from now on.
    pub fn replica(&self) -> PostgresServer {
        let binaries = Binaries::find();
        let folder = Folder::create(binaries.account);
        let mut copy = binaries.command("pg_basebackup", folder.path());
        copy.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"])
            .args(["--no-sync", "--host=127.0.0.1"])
            .arg(format!("--port={}", self.port))
            .arg(format!("--username={USER}"))
            .arg("-D")
            .arg(folder.data());
        let copied = copy.output().unwrap_or_else(|error| panic!("{copy:?}: {error}"));
        let complaint = String::from_utf8_lossy(&copied.stderr);
        assert!(copied.status.success(), "{copy:?} failed: {complaint}");
        Self::launch(binaries, folder, self.options.clone())
    }

    /// A database of this server that was made elsewhere, as a replica's are.
    pub fn existing(&self, name: &str) -> Database {
        Database::new(name, self.url(name))
    }
}
