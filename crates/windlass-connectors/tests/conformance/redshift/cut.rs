//! A connection that is lost before or after any statement of a fence and a load, and the load repeated.

use super::fixture::{LOADED, RedshiftFixture};
use uuid::Uuid;

#[tokio::test]
async fn a_load_that_is_cut_at_any_statement_happens_once() {
    let fixture = RedshiftFixture::new().await;
    let files = fixture.branches().await;
    fixture.reset().await;
    fixture.server.statements();
    fixture.load_until_committed(Uuid::now_v7(), &files).await;
    let statements = fixture.server.statements();
    let listed = statements.join("\n");
    for expected in ["LOCK", "CREATE TEMP TABLE", "COPY", "DELETE", "INSERT", "UPDATE", "COMMIT"] {
        assert!(listed.contains(expected), "{expected} is not in {listed}");
    }
    for (passing, statement) in statements.iter().enumerate() {
        for after in [false, true] {
            fixture.reset().await;
            match after {
                true => fixture.server.cut_after(passing),
                false => fixture.server.cut_before(passing),
            }
            let job = Uuid::now_v7();
            fixture.load_until_committed(job, &files).await;
            let when = if after { "after" } else { "before" };
            assert!(fixture.server.was_cut(), "not cut {when} {statement}");
            assert_eq!(fixture.totals().await, LOADED, "cut {when} {statement}");
            let committed = format!(
                "SELECT concat(count(*), ' ', max(cursor), ' ', max(commits), ' ', max(processed)) \
                 FROM windlass_ledger WHERE job_id = '{job}'"
            );
            let row: String = fixture.database.one(&committed).await;
            assert_eq!(row, "1 \"end\" 1 3", "cut {when} {statement}");
        }
    }
}
