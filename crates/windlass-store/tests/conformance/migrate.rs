//! The schema comes up once, however many processes start at the same time.

use futures::future::join_all;
use windlass_store::connect;

use crate::bench::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_twenty_migrate_at_once() {
    twenty_at_once(Bench::sqlite_unmigrated().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_twenty_migrate_at_once() {
    twenty_at_once(Bench::postgres_unmigrated().await).await;
}

async fn twenty_at_once(bench: Bench) {
    let migrations = (0..20).map(|_| {
        let url = bench.url.clone();
        tokio::spawn(async move { connect(&url).await.unwrap().migrate().await })
    });
    for outcome in join_all(migrations).await {
        outcome.unwrap().unwrap();
    }
    assert_eq!(bench.number("SELECT count(*) - max(number) FROM windlass_migrations").await, 0);
    let job = bench.submit().await;
    bench.store.migrate().await.unwrap();
    bench.check(job).await;
}

both!(a_newer_schema_is_refused);

async fn a_newer_schema_is_refused(bench: Bench) {
    bench.run("INSERT INTO windlass_migrations (number, name, applied_at) SELECT 9999, 'x', max(applied_at) FROM windlass_migrations").await;
    let error = bench.store.migrate().await.unwrap_err().to_string();
    assert!(error.contains("newer"), "{error}");
}
