//! Listeners share their looks.

use super::*;
use futures::StreamExt;
use tempfile::TempDir;
use windlass_core::Config;

async fn watch() -> (TempDir, Watch) {
    let folder = TempDir::new().unwrap();
    let mut config = Config::default();
    config.store.url = format!("sqlite:{}", folder.path().join("store.db").display());
    let engine = Engine::builder(config).connect().await.unwrap();
    (folder, Watch::new(engine, CancellationToken::new()))
}

#[tokio::test]
async fn a_thousand_listeners_are_one_looker() {
    let (_folder, watch) = watch().await;
    let listeners: Vec<_> = (0..1000).map(|_| watch.follow(None)).collect();
    {
        let topics = lock(&watch.topics);
        assert_eq!(topics.len(), 1);
        assert_eq!(topics[&None].receiver_count(), 1000);
    }
    drop(listeners);
    while !lock(&watch.topics).is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_job_that_is_not_there_ends_and_a_server_that_stops_ends_all() {
    let (_folder, watch) = watch().await;
    let mut nothing = Box::pin(watch.follow(Some(JobId::now_v7())));
    assert!(nothing.next().await.is_none());
    assert!(lock(&watch.topics).is_empty());
    let mut all = Box::pin(watch.follow(None));
    watch.stopping.cancel();
    assert!(all.next().await.is_none());
}
