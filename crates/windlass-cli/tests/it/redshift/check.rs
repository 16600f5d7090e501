//! What `check` says about Redshift.

use crate::common::{Data, printed, refused};
use crate::redshift::fixture::{WarehouseFixture, configured};

#[tokio::test]
async fn check_explains_what_is_wrong() {
    let fixture = WarehouseFixture::with(Data::sqlite(), 10).await;
    printed(
        &fixture.sandbox.run("check").await,
        &["loads     daily_report on warehouse", "with COPY from"],
    );
    let right = configured(&fixture.data, &fixture.redshift.url());
    let copy = ", copy = { from = \"s3://windlass/{job_id}/\", iam_role = \"${REDSHIFT_ROLE}\" }";
    for (from, to, expected) in [
        (copy, "", "load.copy: is missing"),
        ("from = \"s3://windlass/{job_id}/\", ", "", "load.copy.from: is missing"),
        ("from = \"s3://windlass/{job_id}/\"", "from = \"file:x/\"", "must be a prefix in S3"),
        (
            "\"${REDSHIFT_ROLE}\" } }\nchunk",
            "\"me\" } }\nchunk",
            "load.copy.iam_role: must be the ARN",
        ),
        ("iam_role = ", "role = ", "unknown field `role`"),
        (
            "connection = \"app\", table = \"accounts\" }\nstep.map",
            "connection = \"warehouse\", table = \"accounts\" }\nstep.map",
            "source.connection: is Redshift",
        ),
        (
            "load = { connection = \"warehouse\", table = \"daily_report\"",
            "load = { connection = \"app\", table = \"daily_report\"",
            "load.copy: needs a connection to Redshift",
        ),
        ("table = \"daily_report\"", "table = \"dayly_report\"", "did you mean `daily_report`"),
        ("sum(total) AS total", "sum(total) AS sum", "has no column `sum`"),
        (
            "url = \"sqlite:windlass.db\"",
            "url = \"redshift://h/d\"",
            "the store cannot be in MySQL, MariaDB, DynamoDB or Redshift",
        ),
    ] {
        assert!(right.contains(from), "{from}");
        fixture.sandbox.write("windlass.toml", &right.replacen(from, to, 1));
        let output = fixture.sandbox.run("check").await;
        refused(&output, &[expected]);
    }
}
