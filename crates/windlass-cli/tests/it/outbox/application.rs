//! The application: a process that places orders until it is killed. It is this test program, started again with a
//! database URL.

use serde_json::json;
use std::env;
use std::time::Duration;
use windlass::{Identity, JobId, Request, outbox};
use windlass_testkit::{Running, Windlass};

const URL: &str = "WINDLASS_TEST_URL";

/// The child process. Without a database URL it does nothing.
#[tokio::test]
async fn application() {
    let Ok(url) = env::var(URL) else { return };
    match url.strip_prefix("sqlite:") {
        Some(path) => in_sqlite(path),
        None => in_postgres(&url).await,
    }
}

/// Starts an application on this database.
pub(crate) fn start(folder: &std::path::Path, url: &str) -> Running {
    Windlass::new(folder).binary(env::current_exe().unwrap()).env(URL, url).spawn([
        "outbox::application::application",
        "--exact",
        "--nocapture",
    ])
}

/// Whether its last output shows that it was killed within a transaction.
pub(crate) fn was_within_a_transaction(said: &str) -> bool {
    said.lines()
        .rev()
        .find(|line| line.contains("begins") || line.contains("committed"))
        .is_some_and(|line| line.contains("begins"))
}

fn order() -> (String, Request) {
    let order = JobId::now_v7().to_string();
    let request = Request {
        params: [("order".to_owned(), json!(order))].into(),
        items: Some(vec![json!({"order": order})]),
        ..Request::new("SHIP")
    };
    (order, request)
}

const INSERT: &str = "INSERT INTO orders (id) VALUES ($1)";
/// A pause between two statements, so that most kills happen there.
const THINKING: Duration = Duration::from_millis(3);

async fn in_postgres(url: &str) {
    let (mut client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for turn in 0.. {
        let (order, request) = order();
        println!("begins");
        let mut tx = client.transaction().await.unwrap();
        if turn % 2 == 0 {
            tx.execute(INSERT, &[&order]).await.unwrap();
        }
        tokio::time::sleep(THINKING).await;
        outbox::enqueue(&mut tx, &request, &Identity::default()).await.unwrap().unwrap();
        tokio::time::sleep(THINKING).await;
        if turn % 2 == 1 {
            tx.execute(INSERT, &[&order]).await.unwrap();
        }
        tx.commit().await.unwrap();
        println!("committed");
    }
}

fn in_sqlite(path: &str) {
    let mut client = rusqlite::Connection::open(path).unwrap();
    client.busy_timeout(Duration::from_secs(60)).unwrap();
    for turn in 0.. {
        let (order, request) = order();
        println!("begins");
        let immediate = rusqlite::TransactionBehavior::Immediate;
        let mut tx = client.transaction_with_behavior(immediate).unwrap();
        if turn % 2 == 0 {
            tx.execute(INSERT, [&order]).unwrap();
        }
        std::thread::sleep(THINKING);
        outbox::enqueue(&mut tx, &request, &Identity::default()).unwrap().unwrap();
        std::thread::sleep(THINKING);
        if turn % 2 == 1 {
            tx.execute(INSERT, [&order]).unwrap();
        }
        tx.commit().unwrap();
        println!("committed");
    }
}
