//! Migrations are applied once, even if many processes start at the same time.

use futures::future::join_all;
use windlass_store::connect_with;

use crate::fixture::StoreFixture;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_twenty_processes_migrate_concurrently() {
    migrate_concurrently(StoreFixture::sqlite_unmigrated().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_twenty_processes_migrate_concurrently() {
    migrate_concurrently(StoreFixture::postgres_unmigrated().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_twenty_processes_migrate_concurrently() {
    migrate_concurrently(StoreFixture::strict_unmigrated().await).await;
}

async fn migrate_concurrently(fixture: StoreFixture) {
    let migrations = (0..20).map(|_| {
        let settings = fixture.settings.clone();
        tokio::spawn(async move { connect_with(&settings).await.unwrap().migrate().await })
    });
    for outcome in join_all(migrations).await {
        outcome.unwrap().unwrap();
    }
    assert_eq!(fixture.number("SELECT count(*) - max(number) FROM windlass_migrations").await, 0);
    let job = fixture.submit().await;
    fixture.store.migrate().await.unwrap();
    fixture.check(job).await;
}

both!(a_newer_schema_is_refused, an_older_schema_is_migrated);

async fn a_newer_schema_is_refused(fixture: StoreFixture) {
    fixture.run("INSERT INTO windlass_migrations (number, name, applied_at) SELECT 9999, 'x', max(applied_at) FROM windlass_migrations").await;
    let error = fixture.store.migrate().await.unwrap_err().to_string();
    assert!(error.contains("newer"), "{error}");
}

async fn an_older_schema_is_migrated(fixture: StoreFixture) {
    let job = fixture.submit().await;
    fixture.run("DROP TABLE windlass_read_snapshots").await;
    fixture.run("DELETE FROM windlass_migrations WHERE number > 1").await;
    fixture.store.migrate().await.unwrap();
    assert_eq!(fixture.number("SELECT count(*) FROM windlass_read_snapshots").await, 0);
    fixture.check(job).await;
}
