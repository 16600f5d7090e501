//! A report has a page for people beside it, unless its job type wants none.

use crate::common::Data;
use crate::world::{PAGE, REPORT, World};

async fn is_beside_its_report(world: World) {
    let id = world.submit("TOTALS").await;
    world.work(&id).await;
    assert_eq!(world.names(), [REPORT, PAGE]);
    world.report_is_right().await;
    world.page_is_of(&id).await;
    let page = world.text(PAGE).await;
    for part in [
        "totals.csv",
        "totals on app",
        "&quot;day&quot;: &quot;monday&quot;",
        "Duration of 10 chunks",
    ] {
        assert!(page.contains(part), "`{part}` is not in: {page}");
    }
    // Whoever asks for it later gets the same but for the moment.
    world.place.run(&format!("job {id} --html later.html")).await.ok();
    let later = world.place.read("later.html");
    let rows = |page: &str| page.split("First rows of the result").nth(1).map(str::to_owned);
    let rows = |page: &str| rows(page).unwrap().split("</table>").next().unwrap().to_owned();
    assert_eq!(rows(&later), rows(&page));

    let plain = world.submit("PLAIN").await;
    world.work(&plain).await;
    assert_eq!(world.text(REPORT).await, "n\n1000\n");
    assert!(world.text(PAGE).await.contains(&id), "the page of an earlier job is left alone");
}

#[tokio::test]
async fn in_a_folder() {
    for data in [Data::sqlite(), Data::postgres().await, Data::mariadb().await] {
        is_beside_its_report(World::with(data).await).await;
    }
}

#[tokio::test]
async fn in_a_bucket() {
    is_beside_its_report(World::in_a_bucket().await).await;
}
