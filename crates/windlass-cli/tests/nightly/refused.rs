//! A full disk and an endpoint that refuses: said clearly, nothing half visible, and gone on with.

use crate::common::{said, text};
use crate::reading::totals;
use crate::world::{DATE, World};
use windlass_testkit::Moto;

/// The names of everything under the output folder.
fn files(world: &World, folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(world.place.path("out").join(folder)) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The only job there is.
async fn id(world: &World) -> String {
    text(&world.place.json("jobs").await[0]["id"])
}

#[tokio::test]
async fn an_export_to_a_full_disk_fails_leaves_nothing_and_goes_on() {
    let world = World::in_a_folder().await;
    let id = world.submit("TRANSACTIONS_EXPORT").await;
    let failed = world.place.run_with_room(4, &format!("worker --job {id}")).await;
    assert!(said(&failed).contains("no space left"), "{failed:?}");
    assert_eq!(world.place.status(&id).await, "FAILED");
    assert_eq!(files(&world, &format!("transactions/{DATE}/{id}")), [""; 0]);
    world.place.run(&format!("retry {id}")).await.ok();
    world.work(&id).await;
    assert_eq!(totals(&world.parts(&id).await), world.own_totals().await);
    world.place.prove(&id).await;
}

#[tokio::test]
async fn a_report_to_a_full_disk_fails_and_is_made_again_of_the_parts_there_are() {
    let world = World::in_a_folder().await;
    let id = world.submit("DAILY_REPORT").await;
    let failed = world.place.run_with_room(4, &format!("worker --job {id}")).await;
    assert!(said(&failed).contains("no space left"), "{failed:?}");
    assert_eq!(world.place.status(&id).await, "FAILED");
    assert_eq!(files(&world, "reports"), [""; 0]);
    let before = world.place.chunks(&id).await;
    let retried = world.place.run(&format!("retry {id}")).await.ok();
    let skipped = format!("0 go again; {} are done and skipped", before.len());
    assert!(said(&retried).contains(&skipped), "{retried:?}");
    world.work(&id).await;
    assert_eq!(world.place.chunks(&id).await, before, "no chunk was run again");
    assert_eq!(totals(&world.report().await), world.own_totals().await);
    world.totals_are_the_banks_own().await;
}

#[tokio::test]
async fn an_endpoint_that_begins_to_refuse_fails_the_rest_and_only_that_is_retried() {
    let moto = Moto::start();
    let world = World::in_a_bucket(&moto).await;
    let export = world.submit("TRANSACTIONS_EXPORT").await;
    world.place.run("throughput TRANSACTIONS_EXPORT --rate 2000").await.ok();
    let worker = world.place.spawn(&format!("worker --job {export}"));
    let some = |job: &serde_json::Value| job["chunks"]["completed"].as_i64() >= Some(3);
    world.place.until(&export, "some chunks are done", some).await;
    moto.refuse();
    world.place.run("throughput TRANSACTIONS_EXPORT --rate unlimited").await.ok();
    let failed = worker.wait().await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(said(&failed).contains("not allowed"), "{failed:?}");
    moto.allow();
    assert!(world.parts(&export).await.is_null(), "there is no manifest");

    let before = world.place.chunks(&export).await;
    let done = before.iter().filter(|chunk| chunk["status"] == "COMPLETED").count();
    assert!(done >= 3 && done < before.len(), "{done} of {}", before.len());
    let retried = world.place.run(&format!("retry {export}")).await.ok();
    let counts = format!("{} go again; {done} are done and skipped", before.len() - done);
    assert!(said(&retried).contains(&counts), "{retried:?} has no `{counts}`");
    world.work(&export).await;
    for (before, after) in before.iter().zip(world.place.chunks(&export).await) {
        let was_done = before["status"] == "COMPLETED";
        assert_eq!(before["epoch"] == after["epoch"], was_done, "{before:#} {after:#}");
    }
    assert_eq!(totals(&world.parts(&export).await), world.own_totals().await);
    world.place.prove(&export).await;
}

#[tokio::test]
async fn a_report_that_the_endpoint_refuses_is_not_there_and_then_is() {
    let moto = Moto::start();
    let world = World::in_a_bucket(&moto).await;
    moto.refuse();
    let failed = world.place.run(&format!("run DAILY_REPORT --param date={DATE}")).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    moto.allow();
    let listing = moto.ask("GET", &format!("/{}", Moto::BUCKET), "");
    assert!(listing.contains(" 200 ") && !listing.contains("<Key>"), "{listing}");
    let id = id(&world).await;
    world.place.run(&format!("retry {id}")).await.ok();
    world.work(&id).await;
    assert_eq!(totals(&world.report().await), world.own_totals().await);
    world.totals_are_the_banks_own().await;
}
