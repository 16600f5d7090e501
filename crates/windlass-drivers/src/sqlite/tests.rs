//! Tests a SQLite file with concurrent writers and readers, failures and panics.

use futures::future::join_all;
use tempfile::TempDir;

use super::*;

async fn table() -> (TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let db = Sqlite::create(&folder.path().join("t.db")).unwrap();
    db.write(|tx| Ok(tx.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY)")?)).await.unwrap();
    (folder, db)
}

async fn insert(db: &Sqlite, id: i64) -> Result<usize, Error> {
    db.write(move |tx| Ok(tx.execute("INSERT INTO t VALUES (?1)", [id])?)).await
}

fn count_in(connection: &rusqlite::Connection) -> Result<i64, Error> {
    Ok(connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
}

async fn count(db: &Sqlite) -> i64 {
    db.read(count_in).await.unwrap()
}

#[tokio::test]
async fn a_commit_is_visible_and_an_error_rolls_back() {
    let (_folder, db) = table().await;
    assert_eq!(insert(&db, 1).await.unwrap(), 1);
    let error = db
        .write(|tx| {
            tx.execute("INSERT INTO t VALUES (2)", [])?;
            tx.execute("INSERT INTO t VALUES (1)", [])?;
            Ok(())
        })
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Data);
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn a_panic_is_an_error_and_later_work_succeeds() {
    let (_folder, db) = table().await;
    let error = db
        .write(|tx| -> Result<(), Error> {
            tx.execute("INSERT INTO t VALUES (2)", [])?;
            panic!("deliberate")
        })
        .await
        .unwrap_err();
    assert!(error.message.contains("deliberate"), "{error}");
    let error = db.read(|_| -> Result<(), Error> { panic!("again") }).await.unwrap_err();
    assert!(error.message.contains("again"), "{error}");
    insert(&db, 3).await.unwrap();
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn two_handles_share_a_writer_and_the_last_one_ends_it() {
    let (folder, db) = table().await;
    let path = folder.path().join("t.db");
    let again = Sqlite::open(&folder.path().join(".").join("t.db")).unwrap();
    assert!(Arc::ptr_eq(&db.database, &again.database));
    let writes = (0..50).map(|id| {
        let db = if id % 2 == 0 { db.clone() } else { again.clone() };
        async move { insert(&db, id).await }
    });
    assert!(join_all(writes).await.into_iter().all(|outcome| outcome.is_ok()));
    let weak = Arc::downgrade(&db.database);
    drop((db, again));
    assert!(weak.upgrade().is_none());
    assert_eq!(count(&Sqlite::open(&path).unwrap()).await, 50);
}

#[tokio::test]
async fn a_recreated_file_is_another_database() {
    let (folder, db) = table().await;
    let path = folder.path().join("t.db");
    for name in ["t.db", "t.db-wal", "t.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(name));
    }
    let anew = Sqlite::create(&path).unwrap();
    assert!(!Arc::ptr_eq(&db.database, &anew.database));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_keep_their_snapshot_while_a_writer_commits() {
    let (_folder, db) = table().await;
    insert(&db, 1).await.unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (began, begun) = tokio::sync::oneshot::channel();
    let reader = db.clone();
    let reading = tokio::spawn(async move {
        reader
            .read(move |connection| {
                let before = count_in(connection)?;
                let _ = began.send(());
                let _ = wait.recv();
                Ok((before, count_in(connection)?))
            })
            .await
    });
    begun.await.unwrap();
    insert(&db, 2).await.unwrap();
    assert_eq!(count(&db).await, 2);
    go.send(()).unwrap();
    assert_eq!(reading.await.unwrap().unwrap(), (1, 1));
    let counts = join_all((0..40).map(|_| count(&db))).await;
    assert!(counts.iter().all(|count| *count == 2));
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let (_folder, db) = table().await;
    let outcome = db.read(|c| Ok(c.execute("INSERT INTO t VALUES (1)", [])?)).await;
    assert_eq!(outcome.unwrap_err().class, ErrorClass::ReadOnly);
}

#[tokio::test]
async fn commits_are_durable_and_foreign_keys_are_checked() {
    let (_folder, db) = table().await;
    let settings = db
        .write(|tx| {
            let number = |sql: &str| tx.query_row(sql, [], |row| row.get::<_, i64>(0));
            let mode: String = tx.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
            Ok((mode, number("PRAGMA synchronous")?, number("PRAGMA foreign_keys")?))
        })
        .await
        .unwrap();
    assert_eq!(settings, ("wal".to_owned(), 2, 1));
}

#[test]
fn a_missing_file_is_named_and_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing.db");
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!(error.class, ErrorClass::Definition);
    assert!(error.message.contains("missing.db") && error.message.contains("create"), "{error}");
    assert!(!path.exists());
    let error = Sqlite::create(&folder.path().join("no/such.db")).unwrap_err();
    assert!(error.message.contains("folder"), "{error}");
}

#[test]
fn a_file_that_is_not_a_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.db");
    std::fs::write(&path, "this is no database, ".repeat(100)).unwrap();
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!(error.code.as_deref(), Some("SQLITE_NOTADB"), "{error}");
    assert!(error.message.contains("text.db"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_file_is_reported() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let (folder, db) = table().await;
    let path = folder.path().join("t.db");
    drop(db);
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(folder.path(), 0o555);
    // Permissions do not apply to root, so root skips the rest.
    let bound = fs::write(folder.path().join("probe"), "").is_err();
    if bound {
        // The writer's thread may not have closed its log yet, so this uses a new file.
        let error = Sqlite::create(&folder.path().join("new.db")).unwrap_err();
        assert_eq!(error.class, ErrorClass::ReadOnly, "{error}");
        set(folder.path(), 0o755);
        set(&path, 0o444);
        let error = Sqlite::open(&path).unwrap_err();
        assert_eq!(error.class, ErrorClass::ReadOnly, "{error}");
        assert!(error.message.contains("t.db"), "{error}");
    }
    set(folder.path(), 0o755);
}
