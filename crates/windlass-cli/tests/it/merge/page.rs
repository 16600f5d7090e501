//! A report has an HTML page beside it, unless its job type disables it.

use crate::common::Data;
use crate::merge::fixture::{MergeFixture, PAGE, REPORT};

async fn the_page_is_beside_its_report(fixture: MergeFixture) {
    let id = fixture.submit("TOTALS").await;
    fixture.work(&id).await;
    assert_eq!(fixture.names(), [REPORT, PAGE]);
    fixture.report_is_right().await;
    fixture.page_is_of(&id).await;
    let page = fixture.text(PAGE).await;
    for part in [
        "totals.csv",
        "totals on app",
        "&quot;day&quot;: &quot;monday&quot;",
        "Duration of 10 chunks",
    ] {
        assert!(page.contains(part), "`{part}` is not in: {page}");
    }
    // A page that is requested later is the same except for its time.
    fixture.sandbox.run(&format!("job {id} --html later.html")).await.ok();
    let later = fixture.sandbox.read("later.html");
    let rows = |page: &str| page.split("First rows of the result").nth(1).map(str::to_owned);
    let rows = |page: &str| rows(page).unwrap().split("</table>").next().unwrap().to_owned();
    assert_eq!(rows(&later), rows(&page));

    let plain = fixture.submit("PLAIN").await;
    fixture.work(&plain).await;
    assert_eq!(fixture.text(REPORT).await, "n\n1000\n");
    assert!(fixture.text(PAGE).await.contains(&id), "the page of an earlier job is unchanged");
}

#[tokio::test]
async fn in_a_folder() {
    for data in [Data::sqlite(), Data::postgres().await, Data::mariadb().await] {
        the_page_is_beside_its_report(MergeFixture::with(data).await).await;
    }
}

#[tokio::test]
async fn in_a_bucket() {
    the_page_is_beside_its_report(MergeFixture::in_a_bucket().await).await;
}
