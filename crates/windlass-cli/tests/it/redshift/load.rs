//! A report and an export, loaded from the source to the warehouse.

use crate::common::Data;
use crate::redshift::fixture::WarehouseFixture;
use windlass_export::Destination;
use windlass_testkit::Moto;

#[tokio::test]
async fn a_report_is_loaded_from_every_database() {
    for data in Data::each().await {
        let fixture = WarehouseFixture::with(data, 1000).await;
        let id = fixture.run("DAILY_REPORT").await;
        fixture.report_is_loaded().await;
        let again = fixture.run("DAILY_REPORT").await;
        fixture.report_is_loaded().await;
        for id in [&id, &again] {
            fixture.sandbox.prove(id).await;
            let job = fixture.sandbox.job(id).await;
            let load = &job["outputs"][0];
            assert_eq!(
                (&load["to"], &load["rows"]),
                (&"warehouse.daily_report".into(), &10.into())
            );
            let objects = fixture.objects(id);
            assert_eq!(objects.len(), 2, "a part and a manifest: {objects:?}");
        }
    }
}

#[tokio::test]
async fn an_export_is_loaded_from_every_database() {
    for data in Data::each().await {
        let fixture = WarehouseFixture::with(data, 1000).await;
        let id = fixture.run("ACCOUNTS").await;
        fixture.accounts_are_loaded().await;
        fixture.run("ACCOUNTS").await;
        fixture.accounts_are_loaded().await;
        fixture.sandbox.prove(&id).await;
        let folder = format!("s3://{}/{id}/", Moto::BUCKET);
        let folder = Destination::open_with(&folder, Moto::shared().environment()).unwrap();
        let manifest = folder.get("redshift.manifest").await.unwrap().unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        let entries = manifest["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 10, "the export's own parts: {manifest}");
        for entry in entries {
            let (url, length) = (&entry["url"], &entry["meta"]["content_length"]);
            assert!(
                url.as_str().unwrap().starts_with(&format!("s3://windlass/{id}/part-")),
                "{url}"
            );
            assert!(length.as_u64().unwrap() > 0 && entry["mandatory"] == true, "{entry}");
        }
    }
}

#[tokio::test]
async fn a_partial_request_loads_nothing() {
    let fixture = WarehouseFixture::with(Data::sqlite(), 1000).await;
    for job_type in ["DAILY_REPORT", "ACCOUNTS"] {
        fixture.sandbox.write("ids.txt", "1\n2\n");
        let submit = format!("{job_type} --param day=monday --ids-file ids.txt");
        let id = fixture.sandbox.submit(&submit).await;
        fixture.sandbox.run(&format!("worker --job {id}")).await.ok();
    }
    for table in ["daily_report", "accounts"] {
        let rows: i64 = fixture.warehouse.one(&format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(rows, 2, "{table}");
    }
}

/// A record that Parquet cannot represent is a dead letter. Its redrive loads the parts of both jobs.
#[tokio::test]
async fn a_redrive_of_an_export_loads_the_parts_of_both_jobs() {
    let fixture = WarehouseFixture::with(Data::sqlite(), 500).await;
    fixture.data.run("UPDATE accounts SET amount = 'many' WHERE id = 7").await;
    let id = fixture.sandbox.submit("ACCOUNTS --param day=monday").await;
    fixture.sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    let rows = "SELECT count(*) FROM accounts WHERE day = 'monday'";
    assert_eq!(fixture.warehouse.one::<i64>(rows).await, 499);
    fixture.data.run("UPDATE accounts SET amount = 49 WHERE id = 7").await;
    let redriven = fixture.sandbox.json("dead redrive --type ACCOUNTS").await;
    let again = redriven[0]["jobId"].as_str().unwrap().to_owned();
    fixture.sandbox.run(&format!("worker --job {again}")).await.ok();
    fixture.accounts_are_loaded().await;
    fixture.sandbox.prove(&again).await;
}
