#![allow(missing_docs, clippy::unwrap_used)]
use std::time::Instant;
use windlass_core::{
    Change, ChunkId, Config, Counts, Cursor, Extent, Identity, KeyRange, Part, Request,
};
use windlass_data::*;

fn job(toml: &str) -> windlass_core::JobType {
    Config::parse(&format!("[jobs.J]\nsource.connection = \"a\"\n{toml}"), |_| None).unwrap().jobs["J"].clone()
}

async fn scope(data: &dyn Connection, toml: &str) -> Scope {
    let mut j = job(toml);
    let t = data.describe(&j.source).await.unwrap();
    assert!(fit(&mut j, &t).is_empty());
    Scope::new(j, t, &Request::new("J"), &Identity::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore]
async fn measure() {
    let url = std::env::var("URL").unwrap();
    let data = connect(&url, 4).await.unwrap();
    data.prepare().await.unwrap();
    let s = scope(&*data, "source.table = \"t\"\nstep.refresh = true\nstep.version = \"version\"")
        .await;
    println!("estimated {}", s.table.estimated_rows);
    let at = Instant::now();
    let n = data.count(&s, &Extent::range(None, None)).await.unwrap();
    println!("count {n}: {:?}", at.elapsed());
    for segments in [2] {
        let at = Instant::now();
        let ranges = data.split(&s, segments).await.unwrap();
        println!("split {segments}: {:?}", at.elapsed());
        let at = Instant::now();
        let work = ranges.into_iter().map(|r| {
            let (data, s) = (data.clone(), s.clone());
            async move {
                let mut rest = r;
                let mut chunks = 0;
                let mut total = 0;
                let mut sizes = vec![];
                loop {
                    let c = data.cut(&s, None, &rest, 1000, 500, None).await.unwrap();
                    chunks += c.chunks.len();
                    total += c.chunks.iter().map(|c| c.1).sum::<i64>();
                    if c.done {
                        break;
                    }
                    rest.after = c.last;
                }
                sizes.push(total);
                (chunks, total)
            }
        });
        let done = futures::future::join_all(work.map(tokio::spawn)).await;
        let done: Vec<_> = done.into_iter().map(|d| d.unwrap()).collect();
        println!("cut {segments}: {:?} {:?}", at.elapsed(), done);
    }
    // read and write back 200k rows by batches of 1000, two at a time
    let hs =
        scope(&*data, "source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"version\"")
            .await;
    let cuts = data.cut(&hs, None, &KeyRange::ALL, 1000, 200, None).await.unwrap();
    let at = Instant::now();
    let chunks: Vec<_> = cuts.chunks.into_iter().map(|c| c.0).collect();
    let work = chunks.chunks(100).map(|part| {
        let (data, hs, part) = (data.clone(), hs.clone(), part.to_vec());
        tokio::spawn(async move {
            for e in part {
                let chunk = ChunkId { job: uuid::Uuid::now_v7(), number: 0 };
                let l = data
                    .fence(&[Fence { chunk, epoch: 1, lost: false }])
                    .await
                    .unwrap()
                    .pop()
                    .unwrap()
                    .unwrap();
                let b = data.read(&hs, &e, 1001, usize::MAX).await.unwrap();
                let n = b.items.len() as i64;
                let items = b
                    .items
                    .into_iter()
                    .map(|i| WriteItem {
                        key: i.key,
                        version: i.version,
                        change: Change::default().set("name", "new").set("amount", 5i64),
                        record: i.record,
                        attempts: 0,
                        conflicts: 0,
                    })
                    .collect();
                let c = data
                    .commit(
                        &hs,
                        &l,
                        Commit {
                            cursor: Cursor::End,
                            effect: Effect::Write(items),
                            counts: Counts { read: n, ..Counts::default() },
                            hold: vec![],
                            settle: vec![],
                        },
                    )
                    .await
                    .unwrap();
                assert_eq!(c.ledger.counts.processed, n);
            }
        })
    });
    futures::future::join_all(work).await;
    println!("read+write 200k: {:?}", at.elapsed());
    // refresh statement 200k
    let at = Instant::now();
    let work = chunks.chunks(100).map(|part| {
        let (data, s, part) = (data.clone(), s.clone(), part.to_vec());
        tokio::spawn(async move {
            for e in part {
                let chunk = ChunkId { job: uuid::Uuid::now_v7(), number: 0 };
                let l = data
                    .fence(&[Fence { chunk, epoch: 1, lost: false }])
                    .await
                    .unwrap()
                    .pop()
                    .unwrap()
                    .unwrap();
                data.commit(
                    &s,
                    &l,
                    Commit {
                        cursor: Cursor::End,
                        effect: Effect::Statement(e),
                        counts: Counts::default(),
                        hold: vec![],
                        settle: vec![],
                    },
                )
                .await
                .unwrap();
            }
        })
    });
    futures::future::join_all(work).await;
    println!("refresh 200k: {:?}", at.elapsed());
    let _ = Part::Keys(vec![]);
}
