//! Subscribers of a topic share one poller.

use super::*;
use futures::StreamExt;
use futures::future::join_all;
use tempfile::TempDir;
use windlass_core::Config;

async fn job_watch() -> (TempDir, JobWatch) {
    let folder = TempDir::new().unwrap();
    let mut config = Config::default();
    config.store.url = format!("sqlite:{}", folder.path().join("store.db").display());
    let engine = Engine::builder(config).connect().await.unwrap();
    (folder, JobWatch::new(engine, CancellationToken::new()))
}

#[tokio::test]
async fn a_thousand_subscribers_share_one_poller() {
    let (_folder, watch) = job_watch().await;
    let subscribers = join_all((0..1000).map(|_| watch.subscribe(None))).await;
    {
        let topics = watch.topics.lock();
        assert_eq!(topics.len(), 1);
        assert_eq!(topics[&None].changes.receiver_count(), 1000);
    }
    drop(subscribers);
    while !watch.topics.lock().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_stream_ends_for_an_unknown_job_and_when_the_server_stops() {
    let (_folder, watch) = job_watch().await;
    let mut unknown = Box::pin(watch.subscribe(Some(JobId::now_v7())).await);
    assert!(unknown.next().await.is_none());
    assert!(watch.topics.lock().is_empty());
    let mut all = Box::pin(watch.subscribe(None).await);
    watch.stopping.cancel();
    assert!(all.next().await.is_none());
}
