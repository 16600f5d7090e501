//! A replica of another test server, with GTID replication.

use super::{MariaDatabase, MariaServer, PASSWORD, USER};

impl MariaServer {
    /// A server for one test that can have replicas: its binary log is enabled.
    pub fn start_primary() -> MariaServer {
        MariaServer::start_with(&[
            "--server-id=1",
            "--log-bin=binlog",
            "--binlog-format=ROW",
            "--log-bin-trust-function-creators=1",
        ])
    }

    /// A replica of this primary. It starts empty and catches up after a moment. After a restart it continues from the
    /// last transaction that it has.
    pub fn replica(&self) -> MariaServer {
        // Since 11.4 a replica verifies the primary's certificate by default, and this primary has none.
        let follow = format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='{USER}', \
             MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, \
             MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0;\n\
             START SLAVE;\n",
            self.port
        );
        let options = [
            &format!("--server-id={}", self.port),
            "--skip-slave-start",
            "--relay-log=relay",
            "--log-bin-trust-function-creators=1",
        ];
        MariaServer::launch(&options, &follow)
    }

    /// A database of this server that was created elsewhere, such as on the primary.
    pub fn existing(&self, name: &str) -> MariaDatabase {
        MariaDatabase::new(name, self.url(name))
    }

    /// Waits until a replica has everything that this primary has written so far.
    pub async fn reach(&self, replica: &MariaServer) {
        let written: String = self.existing("mysql").one("SELECT @@gtid_binlog_pos").await;
        let wait = format!("SELECT MASTER_GTID_WAIT('{written}', 100)");
        let waited: i64 = replica.existing("mysql").one(&wait).await;
        assert_eq!(waited, 0, "the replica does not reach {written}");
    }
}
