//! Shares of `max_connections_total`.

use std::time::Duration;
use windlass_store::{ConnectionShare, Store, TakenConnections};

use crate::fixture::StoreFixture;

const TTL: Duration = Duration::from_secs(60);
const TOTAL: i64 = 10;

fn share(process: &str, connections: i64) -> ConnectionShare {
    let (connection, process) = ("bank".to_owned(), process.to_owned());
    ConnectionShare { connection, process, connections }
}

async fn take(store: &dyn Store, process: &str, connections: i64) -> bool {
    store.take_connection_share(&share(process, connections), TOTAL, TTL).await.unwrap()
}

async fn shares_never_exceed_the_total(fixture: StoreFixture) {
    let store = &*fixture.store;
    assert!(take(store, "a", 4).await);
    assert!(take(store, "b", 4).await);
    assert!(!take(store, "c", 4).await, "2 are left");
    assert!(take(store, "d", 2).await);
    assert!(!take(store, "e", 1).await);
    let taken = TakenConnections { connections: 10, processes: 3 };
    assert_eq!(store.taken_connections("bank").await.unwrap(), taken);
    // Another connection has its own total.
    let other = ConnectionShare { connection: "warehouse".to_owned(), ..share("e", 10) };
    assert!(store.take_connection_share(&other, TOTAL, TTL).await.unwrap());
    // A share is extended while nothing is free, and also when the total has become smaller.
    assert!(take(store, "a", 4).await);
    assert!(store.take_connection_share(&share("a", 4), 4, TTL).await.unwrap());
    assert_eq!(store.taken_connections("bank").await.unwrap(), taken);
    store.release_connection_share("bank", "b").await.unwrap();
    assert!(take(store, "c", 4).await);
}

async fn an_expired_share_is_free(fixture: StoreFixture) {
    let store = &*fixture.store;
    assert!(take(store, "dead", 10).await);
    assert!(!take(store, "next", 10).await);
    let past = if fixture.is_sqlite() { "1" } else { "'epoch'" };
    fixture.run(&format!("UPDATE windlass_connection_shares SET expires_at = {past}")).await;
    assert_eq!(store.taken_connections("bank").await.unwrap(), TakenConnections::default());
    assert!(take(store, "next", 10).await);
    // A process that was frozen has lost its share.
    assert!(!take(store, "dead", 10).await);
    assert_eq!(fixture.number("SELECT count(*) FROM windlass_connection_shares").await, 1);
}

async fn processes_that_take_at_once_do_not_exceed_the_total(fixture: StoreFixture) {
    let mut tasks = Vec::new();
    for number in 0..20 {
        let store = fixture.other().await;
        let process = format!("process {number}");
        tasks.push(tokio::spawn(async move { take(&*store, &process, 3).await }));
    }
    let mut taken = 0;
    for task in tasks {
        taken += i64::from(task.await.unwrap());
    }
    assert_eq!(taken, TOTAL / 3);
    let all = fixture.store.taken_connections("bank").await.unwrap();
    assert_eq!((all.connections, all.processes), (9, 3));
}

both!(
    shares_never_exceed_the_total,
    an_expired_share_is_free,
    processes_that_take_at_once_do_not_exceed_the_total,
);
