//! Applications and relays are killed at random and repeatedly. There are as many jobs as committed orders.

use crate::common::seeded_rng::SeededRng;
use crate::common::{Data, eventually};
use crate::outbox::application::{start, was_within_a_transaction};
use crate::outbox::fixture::OutboxFixture;
use std::time::Duration;

/// The minimum number of rounds, each with a kill of an application and of a relay.
const ROUNDS: u32 = 15;

#[tokio::test]
async fn each_committed_order_is_one_job_on_postgresql_with_three_killed_relays() {
    let fixture = OutboxFixture::on(Data::postgres().await).await;
    kill(&fixture, 3).await;
}

#[tokio::test]
async fn each_committed_order_is_one_job_on_sqlite_with_two_killed_relays() {
    let fixture = OutboxFixture::on(Data::sqlite()).await;
    kill(&fixture, 2).await;
}

async fn kill(fixture: &OutboxFixture, relays: u64) {
    let mut rng = SeededRng::new(20_261_116);
    let mut running: Vec<_> = (0..relays).map(|_| fixture.relay()).collect();
    let (mut rounds, mut amid, mut relayed) = (0, 0, 0);
    // Until kills have happened within transactions and during a relay's work.
    while rounds < ROUNDS || amid < 3 || relayed < 3 {
        assert!(rounds < 20 * ROUNDS, "{amid} killed within a transaction, {relayed} relayed");
        rounds += 1;
        let jobs = fixture.jobs().await.len();
        let application = start(&fixture.sandbox.path("."), &fixture.data.url());
        eventually("the application works", async || {
            assert!(application.is_running(), "{}", application.stderr());
            application.stdout().contains("begins")
        })
        .await;
        tokio::time::sleep(Duration::from_millis(rng.next_in(20..400))).await;
        let victim = &mut running[rng.next_in(0..relays) as usize];
        if rng.next_in(0..2) == 0 {
            victim.kill9();
            application.kill9();
        } else {
            application.kill9();
            tokio::time::sleep(Duration::from_millis(rng.next_in(0..300))).await;
            victim.kill9();
        }
        amid += u32::from(was_within_a_transaction(&application.wait().await.stdout));
        relayed += u32::from(fixture.jobs().await.len() > jobs);
        *victim = fixture.relay();
    }
    drop(running);
    let orders = fixture.ship_all().await;
    assert!(orders > 0);
}
