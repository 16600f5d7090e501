//! Another transaction stays open during a whole job. The dead rows that it keeps from being vacuumed do not slow down
//! leasing.

use crate::common::{CliSandbox, Data, eventually, raise};

const CHUNKS: i64 = 6_000;
const LONG: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; \
                    SELECT count(*) FROM accounts; SELECT pg_sleep(1000)";

#[tokio::test]
async fn a_long_transaction_does_not_slow_down_leasing() {
    let data = Data::postgres().await.with_accounts(CHUNKS).await;
    let sandbox = CliSandbox::on(&data, &(raise(1) + "chunk.lease = \"1m\"\n"));
    let work = async {
        let snapshot = "SELECT count(*) FROM pg_stat_activity \
                      WHERE backend_xmin IS NOT NULL AND query LIKE '%pg_sleep(1000)' \
                          AND pid <> pg_backend_pid()";
        eventually("the transaction is open", async || data.number(snapshot).await == 1).await;
        let id = sandbox.submit("RAISE").await;
        sandbox.run(&format!("worker --job {id}")).await.ok();
        assert_eq!(data.number(snapshot).await, 1, "the transaction was open all the time");
        id
    };
    let id = tokio::select! {
        () = data.run(LONG) => panic!("the transaction ended"),
        id = work => id,
    };
    data.raised_once(CHUNKS).await;
    sandbox.prove(&id).await;
    // Each lease begins where the last one ended. Sometimes one scans from the start: after five seconds, and after
    // one second if nothing is found.
    let seconds = data
        .number("SELECT extract(epoch FROM finished_at - started_at)::bigint FROM windlass_jobs")
        .await;
    let read = data
        .number(
            "SELECT idx_tup_read FROM pg_stat_user_indexes \
             WHERE indexrelname = 'windlass_chunks_fresh'",
        )
        .await;
    assert!(read <= CHUNKS * (12 + seconds), "{read} entries for {CHUNKS} chunks");
    data.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE query LIKE '%pg_sleep(1000)' AND pid <> pg_backend_pid()",
    )
    .await;
}
