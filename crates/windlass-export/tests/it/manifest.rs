//! Manifests, orphaned files, and reports.

use crate::common::{blob_schema, columns, folder_destination, names, write_difficult_rows};
use std::fs;
use windlass_export::{
    Compression, Destination, Format, Manifest, ManifestPart, Output, PartName, PartWriter,
    scan_orphans, schema,
};

fn output() -> Output {
    Output::with(Format::Csv, Compression::Gzip).unwrap()
}

async fn part(destination: &Destination, chunk: i64, epoch: i64) -> ManifestPart {
    let name = PartName { chunk, epoch, nonce: 7 };
    ManifestPart::new(name, write_difficult_rows(destination, &name.file(output()), output()).await)
}

fn manifest(job: &str, parts: Vec<ManifestPart>) -> Manifest {
    Manifest::new(job, "EXPORT", output(), &schema(&columns()), parts).unwrap()
}

#[tokio::test]
async fn a_manifest_lists_its_parts_in_order_and_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    assert_eq!(Manifest::read(&destination).await.unwrap(), None);
    let parts = vec![
        part(&destination, 2, 1).await,
        part(&destination, 0, 1).await,
        part(&destination, 1, 3).await,
    ];
    let manifest = manifest("j", parts);
    manifest.write(&destination).await.unwrap();
    assert_eq!(Manifest::read(&destination).await.unwrap(), Some(manifest.clone()));
    let order: Vec<_> = manifest.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(
        order,
        [
            "part-000000-1-0000000000000007.csv.gz",
            "part-000001-3-0000000000000007.csv.gz",
            "part-000002-1-0000000000000007.csv.gz"
        ]
    );
    assert_eq!((manifest.totals.parts, manifest.totals.rows), (3, 12));
    let text = fs::read_to_string(folder.path().join("manifest.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["jobId"], "j");
    assert_eq!(json["format"], "csv");
    assert_eq!(json["compression"], "gzip");
    assert_eq!(
        json["schema"][4],
        serde_json::json!({"name": "amount", "type": "decimal(12,2)", "nullable": true})
    );
    assert_eq!(json["parts"][1]["epoch"], 3);
}

#[tokio::test]
async fn two_parts_of_one_chunk_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let parts = vec![part(&destination, 1, 1).await, part(&destination, 1, 2).await];
    let refused = Manifest::new("j", "EXPORT", output(), &schema(&columns()), parts);
    assert!(refused.unwrap_err().to_string().contains("part-000001-2"));
}

#[tokio::test]
async fn a_modified_manifest_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    manifest("j", vec![part(&destination, 1, 1).await]).write(&destination).await.unwrap();
    let file = folder.path().join("manifest.json");
    let text = fs::read_to_string(&file).unwrap();
    for (what, with) in
        [("\"rows\": 4", "\"rows\": 5"), ("\"version\": 1", "\"version\": 2"), ("{", "")]
    {
        fs::write(&file, text.replacen(what, with, 1)).unwrap();
        assert!(Manifest::read(&destination).await.is_err(), "{what}");
    }
}

#[tokio::test]
async fn orphaned_files_are_deleted_and_other_files_kept() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let kept = vec![part(&destination, 1, 2).await, part(&destination, 2, 1).await];
    part(&destination, 1, 1).await;
    for strange in ["notes.txt", "part-1.csv", "part-000001-1-0000000000000007.csv.gz.bak", "x#1"] {
        fs::write(folder.path().join(strange), "x").unwrap();
    }
    // As a killed process leaves it.
    fs::write(folder.path().join("part-000002-1-0000000000000007.csv.gz#1"), "x").unwrap();
    fs::create_dir(folder.path().join("part-000009-1-0000000000000007.csv")).unwrap();
    let manifest = manifest("j", kept);
    manifest.write(&destination).await.unwrap();
    let found = scan_orphans(&destination, &manifest).await.unwrap();
    assert_eq!(
        found.orphans,
        ["part-000001-1-0000000000000007.csv.gz", "part-000002-1-0000000000000007.csv.gz#1"]
    );
    assert_eq!(found.missing, [""; 0]);
    found.delete_orphans(&destination).await.unwrap();
    found.delete_orphans(&destination).await.unwrap();
    let left = [
        "manifest.json",
        "notes.txt",
        "part-000001-1-0000000000000007.csv.gz.bak",
        "part-000001-2-0000000000000007.csv.gz",
        "part-000002-1-0000000000000007.csv.gz",
        "part-1.csv",
        "x#1",
    ];
    assert_eq!(names(&destination).await, left);
}

#[tokio::test]
async fn a_deleted_or_truncated_part_is_reported_missing() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let manifest =
        manifest("j", vec![part(&destination, 1, 1).await, part(&destination, 2, 1).await]);
    fs::remove_file(folder.path().join("part-000001-1-0000000000000007.csv.gz")).unwrap();
    fs::write(folder.path().join("part-000002-1-0000000000000007.csv.gz"), "cut").unwrap();
    let found = scan_orphans(&destination, &manifest).await.unwrap();
    assert_eq!(
        found.missing,
        ["part-000001-1-0000000000000007.csv.gz", "part-000002-1-0000000000000007.csv.gz"]
    );
    assert_eq!(found.orphans, [""; 0]);
}

#[tokio::test]
async fn the_files_of_a_cancelled_job_are_found_and_those_of_other_jobs_kept() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let nothing = manifest("j", Vec::new());
    assert_eq!(scan_orphans(&destination, &nothing).await.unwrap().orphans, [""; 0]);
    let part = part(&destination, 1, 1).await;
    assert_eq!(
        scan_orphans(&destination, &nothing).await.unwrap().orphans,
        ["part-000001-1-0000000000000007.csv.gz"]
    );
    manifest("other", vec![part]).write(&destination).await.unwrap();
    let error = scan_orphans(&destination, &nothing).await.unwrap_err();
    assert!(error.to_string().contains("job other"), "{error}");
}

#[tokio::test]
async fn a_report_is_one_object_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}/NIGHT/2025-01-31.parquet", folder.path().display());
    let (destination, name) = Destination::split(&url).unwrap();
    let destination = Destination::open_with(destination, []).unwrap();
    let writer = PartWriter::new(&destination, name, blob_schema(), Output::of_file(name).unwrap());
    let written = writer.unwrap().finish().await.unwrap();
    assert_eq!(written.rows, 0);
    let bytes = fs::read(folder.path().join("NIGHT/2025-01-31.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}
