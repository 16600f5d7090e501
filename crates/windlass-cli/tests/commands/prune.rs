//! `windlass prune`.

use crate::common::{Data, Place, raise, text};

#[tokio::test]
async fn what_ended_is_removed_from_store_and_ledger() {
    for data in Data::both().await {
        let data = data.with_accounts(20).await;
        let place = Place::on(&data, &raise(10));
        let done = place.json("run RAISE").await;
        let (id, chunks) = (text(&done["id"]), &done["chunks"]["total"]);
        let kept = place.run("prune").await.ok().stdout;
        assert!(kept.starts_with("deleted 0 jobs, 0 chunks"), "{kept}");
        place.run(&format!("audit {id}")).await.ok();

        let emptied = raise(10) + "retention.chunks = \"0s\"\n";
        place.write("windlass.toml", &data.config(&emptied));
        let pruned = place.json("prune").await;
        assert_eq!((&pruned["emptied"], &pruned["chunks"]), (&1.into(), chunks), "{pruned}");
        assert_eq!(data.number("SELECT count(*) FROM windlass_ledger").await, 0);
        let listed = place.run(&format!("chunks {id}")).await.ok().stdout;
        assert!(listed.contains(&format!("{chunks} chunks pruned")), "{listed}");

        let pruned = place.json("prune --older-than 0s").await;
        assert_eq!(pruned["jobs"], 1, "{pruned}");
        let none = place.run("jobs").await.ok().stdout;
        assert!(none.contains("no jobs"), "{none}");
    }
}
