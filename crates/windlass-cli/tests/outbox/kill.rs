//! Applications and relays killed at random, again and again: as many jobs as committed orders.

use crate::application::{start, was_amid};
use crate::common::{Data, eventually};
use crate::dice::Dice;
use crate::world::Shop;
use std::time::Duration;

/// Rounds at least, each with a death of an application and of a relay.
const ROUNDS: u32 = 15;

#[tokio::test]
async fn on_postgresql_with_three_relays() {
    let shop = Shop::on(Data::postgres().await).await;
    kill(&shop, 3).await;
}

#[tokio::test]
async fn on_sqlite_with_two_relays() {
    let shop = Shop::on(Data::sqlite()).await;
    kill(&shop, 2).await;
}

async fn kill(shop: &Shop, relays: u64) {
    let mut dice = Dice::new(20_261_116);
    let mut running: Vec<_> = (0..relays).map(|_| shop.relay()).collect();
    let (mut rounds, mut amid, mut relayed) = (0, 0, 0);
    // Until deaths have fallen within transactions, and into a relay's work.
    while rounds < ROUNDS || amid < 3 || relayed < 3 {
        assert!(rounds < 20 * ROUNDS, "{amid} amid a transaction, {relayed} relayed");
        rounds += 1;
        let jobs = shop.jobs().await.len();
        let application = start(&shop.sandbox.path("."), &shop.data.url());
        eventually("it is at work", async || {
            assert!(application.is_running(), "{}", application.stderr());
            application.stdout().contains("begins")
        })
        .await;
        tokio::time::sleep(Duration::from_millis(dice.roll(20..400))).await;
        let victim = &mut running[dice.roll(0..relays) as usize];
        if dice.roll(0..2) == 0 {
            victim.kill9();
            application.kill9();
        } else {
            application.kill9();
            tokio::time::sleep(Duration::from_millis(dice.roll(0..300))).await;
            victim.kill9();
        }
        amid += u32::from(was_amid(&application.wait().await.stdout));
        relayed += u32::from(shop.jobs().await.len() > jobs);
        *victim = shop.relay();
    }
    drop(running);
    let orders = shop.ship_all().await;
    assert!(orders > 0);
}
