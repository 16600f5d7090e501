//! MariaDB with a replica that becomes the primary.

use super::{ROWS, has_lost_effects, is_completed_once, start, worked_on};
use crate::common::{CliSandbox, Data, config, eventually, job};
use windlass_testkit::{MariaDatabase, MariaServer, Proxy};

/// A primary, its replica, and the address that leads to one of them.
struct Pair {
    primary: MariaServer,
    replica: MariaServer,
    database: MariaDatabase,
    proxy: Proxy,
}

impl Pair {
    /// Replication is asynchronous. The table of the records is on both.
    async fn start() -> Pair {
        let primary = MariaServer::start_primary();
        let database = primary.database().await;
        let replica = primary.replica();
        let proxy = Proxy::start_mysql(primary.addr()).await;
        let data = Data::Mariadb(database.clone()).with_accounts(ROWS).await;
        data.pace(0.03).await;
        primary.reach(&replica).await;
        Pair { primary, replica, database, proxy }
    }

    /// A commit is confirmed, and visible to others, when the replica has it.
    async fn start_semi_synchronous() -> Pair {
        let pair = Pair::start().await;
        let replica = pair.replica.existing("mysql");
        replica.run("SET GLOBAL rpl_semi_sync_slave_enabled = ON").await;
        replica.run("STOP SLAVE IO_THREAD; START SLAVE IO_THREAD").await;
        let primary = pair.primary.existing("mysql");
        primary
            .run(
                "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'; \
                 SET GLOBAL rpl_semi_sync_master_timeout = 100000; \
                 SET GLOBAL rpl_semi_sync_master_enabled = ON",
            )
            .await;
        eventually("the replica confirms commits", async || {
            let clients = primary.rows("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").await;
            clients[0][1].as_deref() == Some("1")
        })
        .await;
        pair
    }

    fn sandbox(&self) -> CliSandbox {
        // Every row takes time, as `pace` says.
        let sql = "UPDATE accounts SET amount = amount + 1 \
                   WHERE {chunk} AND SLEEP((SELECT seconds FROM pace)) = 0";
        let jobs = job("RAISE", sql, 100) + "chunk.lease = \"1s\"\n";
        // The MySQL driver has no `sslmode`.
        let url = self.proxy.url_via(self.database.url()).replace("?sslmode=disable", "");
        CliSandbox::with(&config("sqlite:windlass.db", &url, &jobs))
    }

    /// The primary crashes; the replica applies what it has received, and the address leads to it.
    async fn fail_over(&self) {
        self.primary.stop_immediate();
        let replica = self.replica.existing("mysql");
        replica.run("STOP SLAVE IO_THREAD").await;
        // The received position follows the kind of position, `Slave_Pos`.
        let status = replica.rows("SHOW SLAVE STATUS").await.remove(0);
        let kind = status.iter().position(|cell| cell.as_deref() == Some("Slave_Pos")).unwrap();
        let received = status[kind + 1].clone().unwrap();
        let wait = format!("SELECT MASTER_GTID_WAIT('{received}', 100)");
        assert_eq!(replica.one::<i64>(&wait).await, 0, "not applied: {received}");
        replica.run("STOP SLAVE; RESET SLAVE ALL").await;
        self.proxy.redirect(self.replica.addr());
        self.proxy.cut_all().await;
    }

    /// The database on the new primary.
    fn promoted(&self) -> Data {
        Data::Mariadb(self.replica.existing(self.database.name()))
    }
}

#[tokio::test]
async fn records_on_a_semi_synchronous_replica_are_neither_lost_nor_doubled() {
    let pair = Pair::start_semi_synchronous().await;
    let sandbox = pair.sandbox();
    let started = start(&sandbox, 8).await;
    pair.fail_over().await;
    is_completed_once(&sandbox, &pair.promoted(), started).await;
}

#[tokio::test]
async fn an_audit_finds_what_an_asynchronous_replica_has_lost() {
    let pair = Pair::start().await;
    let sandbox = pair.sandbox();
    let (id, _worker) = start(&sandbox, 4).await;
    pair.replica.existing("mysql").run("STOP SLAVE IO_THREAD").await;
    worked_on(&sandbox, &id).await;
    pair.fail_over().await;
    has_lost_effects(&sandbox, &pair.promoted(), &id).await;
}
