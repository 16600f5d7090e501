//! `windlass prune`.

use crate::common::{CliSandbox, raise, text};

#[tokio::test]
async fn an_ended_job_is_removed_from_store_and_ledger() {
    for (data, sandbox) in CliSandbox::on_both(20, &raise(10)).await {
        let done = sandbox.json("run RAISE").await;
        let (id, chunks) = (text(&done["id"]), &done["chunks"]["total"]);
        let kept = sandbox.run("prune").await.ok().stdout;
        assert!(kept.starts_with("deleted 0 jobs, 0 chunks"), "{kept}");
        sandbox.run(&format!("audit {id}")).await.ok();

        let emptied = raise(10) + "retention.chunks = \"0s\"\n";
        sandbox.write("windlass.toml", &data.config(&emptied));
        let pruned = sandbox.json("prune").await;
        assert_eq!((&pruned["emptied"], &pruned["chunks"]), (&1.into(), chunks), "{pruned}");
        assert_eq!(data.number("SELECT count(*) FROM windlass_ledger").await, 0);
        let listed = sandbox.run(&format!("chunks {id}")).await.ok().stdout;
        assert!(listed.contains(&format!("{chunks} chunks pruned")), "{listed}");

        let pruned = sandbox.json("prune --older-than 0s").await;
        assert_eq!(pruned["jobs"], 1, "{pruned}");
        let none = sandbox.run("jobs").await.ok().stdout;
        assert!(none.contains("no jobs"), "{none}");
    }
}
