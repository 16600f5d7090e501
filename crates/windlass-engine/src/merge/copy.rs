//! Loads a result into Redshift: Parquet files and a manifest in S3, then one transaction with COPY.
//!
//! The result is never in memory as a whole: it is written to S3 while the database sends it. The files of each lease
//! have their own names, so a process that lost the merge writes beside its successor.

use crate::Result;
use crate::engine::Engine;
use crate::merge::destination::{self, JobDestination, fill_template};
use crate::merge::job_result::{MergedRows, PREVIEW_ROWS};
use crate::merge::merge::{Merging, begin_load, log_loaded, stored_result};
use crate::merge::result_rows::{check_earlier_parts, send_result};
use tokio::sync::mpsc::Receiver;
use windlass_connectors::{Bound, CopyRequest, LoadRequest, Rows, StagedColumn};
use windlass_core::problem::Code;
use windlass_core::{
    Column, ColumnType, JobId, JobStatus, JobType, Load, Problem, S3Copy, StepKind,
};
use windlass_export::{
    DataType, Destination, Manifest, PartWriter, RowBuilder, SchemaRef, redshift_output,
    redshift_type, schema, write_redshift_manifest,
};
use windlass_store::{JobSnapshot, SegmentLease};

/// Approximate size of the rows in one file, uncompressed.
const FILE_BYTES: usize = 32 << 20;
/// Rows encoded at once.
const BATCH_ROWS: usize = 8192;
/// Batches that may be read ahead of the writer.
const READ_AHEAD_BATCHES: usize = 2;
/// Approximate size of a result that is kept in memory, for a report and for the store.
const MAX_KEPT_BYTES: usize = 32 << 20;
/// The name of the manifest beside the parts of an export. Every merge of a job writes the same bytes.
pub(crate) const EXPORT_MANIFEST: &str = "redshift.manifest";

/// The files of a result.
struct Staged {
    columns: Vec<StagedColumn>,
    /// URL and size.
    objects: Vec<(String, u64)>,
    total: i64,
    /// All rows, or the first ones of a large result.
    kept: Rows,
}

/// Writes the result to S3 and loads it, once per job.
pub(crate) async fn load_result(
    merge: Merging<'_>,
    load: &Load,
    copy: &S3Copy,
    bounds: &[Bound],
) -> Result<MergedRows> {
    let Merging { engine, job, redrive_chain, lease } = merge;
    let from = fill_template(&job.snapshot, copy.from.as_deref().unwrap_or_default())?;
    let location = Destination::open(&from)?;
    let (batches, results) = tokio::sync::mpsc::channel(READ_AHEAD_BATCHES);
    let params = &job.snapshot.request.params;
    let check = |result: &Rows| LoadRequest { load, result, params, bounds }.check();
    let sending = send_result(engine, job, redrive_chain, batches);
    let writing = write_files(job.definition(), &location, lease, results, check);
    let (sent, staged) = tokio::join!(sending, writing);
    // A writer that fails drops the receiver, so its error is the first one.
    let staged = staged?;
    sent?;
    let Staged { columns, objects, total, kept } = staged;
    let merged = MergedRows { rows: kept, total, manifest: None };
    if job.definition().report.is_some() {
        merged.whole()?;
    }
    let manifest = write_manifest(&location, &format!("{}.manifest", stem(lease)), objects).await?;
    copy_into(merge, load, bounds, &columns, total, manifest.as_deref()).await?;
    delete_earlier(&location, lease).await?;
    Ok(MergedRows { manifest: Some(manifest.unwrap_or(from)), ..merged })
}

/// Loads the parts of an export, together with those of the jobs that it redrives.
pub(crate) async fn load_export(
    merge: Merging<'_>,
    load: &Load,
    bounds: &[Bound],
    destination: &JobDestination,
) -> Result<()> {
    let Merging { engine, job, redrive_chain, .. } = merge;
    let params = &job.snapshot.request.params;
    let empty = Rows { columns: destination.columns.clone(), rows: Vec::new() };
    LoadRequest { load, result: &empty, params, bounds }.check()?;
    check_earlier_parts(engine, job, redrive_chain).await?;
    let (mut objects, mut total) = (Vec::new(), 0);
    for id in redrive_chain {
        let is_own = *id == job.snapshot.id;
        if !is_own && engine.job(*id).await?.status != JobStatus::Completed {
            continue;
        }
        let location = match is_own {
            true => destination.location().clone(),
            false => earlier_location(engine, *id, destination.schema()).await?,
        };
        for part in destination::list_parts(engine, *id).await? {
            total += part.part.rows;
            let name = part.part.name.unwrap_or_default();
            objects.push((location.object_url(&name), part.part.bytes.unsigned_abs()));
        }
    }
    let manifest = write_manifest(destination.location(), EXPORT_MANIFEST, objects).await?;
    let columns = staged_columns(job.definition(), destination.schema())?;
    copy_into(merge, load, bounds, &columns, total, manifest.as_deref()).await
}

/// Where an earlier job of the redrive chain exported its parts, which must have the same columns.
async fn earlier_location(engine: &Engine, id: JobId, schema: &SchemaRef) -> Result<Destination> {
    let refuse = |why: &str| {
        let detail =
            format!("cannot merge this redrive with job {id}, {why}; submit the job type again");
        Problem::new(Code::Status, detail)
    };
    let snapshot = engine.store().snapshot(id).await?.ok_or_else(|| refuse("which was pruned"))?;
    let StepKind::Export(export) = &snapshot.definition.step.kind else {
        return Err(refuse("which was no export").into());
    };
    let manifest = stored_result(engine, id).await?.and_then(|part| part.content);
    let manifest: Option<Manifest> =
        manifest.and_then(|content| serde_json::from_slice(&content).ok());
    let names = schema
        .fields()
        .iter()
        .map(|field| (field.name().clone(), windlass_export::type_name(field)));
    let names: Vec<_> = names.collect();
    let is_same = |manifest: &Manifest| {
        let columns =
            manifest.schema.iter().map(|column| (column.name.clone(), column.kind.clone()));
        columns.eq(names.iter().cloned())
    };
    match manifest {
        None => Err(refuse("whose manifest was pruned").into()),
        Some(manifest) if !is_same(&manifest) => {
            Err(refuse("whose parts have other columns").into())
        }
        Some(_) => Ok(Destination::open(&fill_template(&snapshot, &export.to)?)?),
    }
}

/// Runs the transaction, unless it is committed already.
async fn copy_into(
    merge: Merging<'_>,
    load: &Load,
    bounds: &[Bound],
    columns: &[StagedColumn],
    rows: i64,
    manifest: Option<&str>,
) -> Result<()> {
    let Merging { engine, job, lease, .. } = merge;
    let iam_role = load.copy.as_ref().map_or("default", |copy| copy.iam_role.as_str());
    let Some(ledger) = begin_load(engine, lease, load).await? else { return Ok(()) };
    let params = &job.snapshot.request.params;
    let request = CopyRequest { load, manifest, iam_role, columns, rows, params, bounds };
    engine.connection(&load.connection)?.copy(&ledger, request).await?;
    log_loaded(lease.job, load, rows);
    Ok(())
}

/// `None` without objects, since COPY refuses an empty manifest.
async fn write_manifest(
    location: &Destination,
    name: &str,
    objects: Vec<(String, u64)>,
) -> Result<Option<String>> {
    match objects.is_empty() {
        true => Ok(None),
        false => Ok(Some(write_redshift_manifest(location, name, objects).await?)),
    }
}

/// Writes a result as Parquet files of bounded size.
async fn write_files(
    definition: &JobType,
    location: &Destination,
    lease: SegmentLease,
    mut results: Receiver<Rows>,
    check: impl Fn(&Rows) -> windlass_connectors::Result<()>,
) -> Result<Staged> {
    let mut staged: Option<(Staged, SchemaRef)> = None;
    let mut open: Option<(PartWriter, usize)> = None;
    let mut kept_bytes = 0;
    while let Some(batch) = results.recv().await {
        check(&batch)?;
        if staged.is_none() {
            let schema = schema(&loadable(&batch.columns));
            let columns = staged_columns(definition, &schema)?;
            let kept = Rows { columns: batch.columns.clone(), rows: Vec::new() };
            staged = Some((Staged { columns, objects: Vec::new(), total: 0, kept }, schema));
        }
        let Some((staged, schema)) = &mut staged else { continue };
        let mut builder = RowBuilder::new(schema.clone())?;
        for rows in batch.rows.chunks(BATCH_ROWS) {
            for row in rows {
                builder.push(row)?;
            }
            let bytes = builder.bytes();
            kept_bytes += bytes;
            let (mut writer, written) = match open.take() {
                Some(open) => open,
                None => {
                    let name = format!("{}-{:05}.parquet", stem(lease), staged.objects.len());
                    (PartWriter::new(location, name, schema.clone(), redshift_output()?)?, 0)
                }
            };
            writer.write(builder.finish()?).await?;
            match written + bytes {
                written if written < FILE_BYTES => open = Some((writer, written)),
                _ => staged.close(location, writer).await?,
            }
        }
        staged.total += batch.rows.len() as i64;
        staged.kept.rows.extend(batch.rows);
        if kept_bytes > MAX_KEPT_BYTES {
            staged.kept.rows.truncate(PREVIEW_ROWS);
        }
    }
    let Some((mut staged, _)) = staged else {
        // The sender failed before its first batch, and its error is reported.
        let kept = Rows::default();
        return Ok(Staged { columns: Vec::new(), objects: Vec::new(), total: 0, kept });
    };
    if let Some((writer, _)) = open {
        staged.close(location, writer).await?;
    }
    Ok(staged)
}

impl Staged {
    async fn close(&mut self, location: &Destination, writer: PartWriter) -> Result<()> {
        let written = writer.finish().await?;
        self.objects.push((location.object_url(&written.name), written.bytes));
        Ok(())
    }
}

/// The beginning of the names of a lease's files.
fn stem(lease: SegmentLease) -> String {
    format!("load-{:06}-{:016x}", lease.epoch, lease.nonce)
}

/// Deletes the files of earlier leases of the merge. They are fenced, so none of them is loaded any more.
async fn delete_earlier(location: &Destination, lease: SegmentLease) -> Result<()> {
    for (name, _) in location.list().await? {
        let epoch = name.strip_prefix("load-").and_then(|rest| rest.split('-').next());
        if epoch.and_then(|epoch| epoch.parse().ok()).is_some_and(|epoch: i64| epoch < lease.epoch)
        {
            location.remove(&name).await?;
        }
    }
    Ok(())
}

/// Deletes the files of a cancelled job whose load is fenced and was not committed.
pub(crate) async fn delete_staged(job: &JobSnapshot) -> Result<()> {
    let copy = job.definition.load.as_ref().and_then(|load| load.copy.as_ref());
    let Some(from) = copy.and_then(|copy| copy.from.as_ref()) else { return Ok(()) };
    if matches!(job.definition.step.kind, StepKind::Export(_)) {
        return Ok(());
    }
    let location = Destination::open(&fill_template(job, from)?)?;
    for (name, _) in location.list().await?.iter().filter(|(name, _)| name.starts_with("load-")) {
        location.remove(name).await?;
    }
    Ok(())
}

/// The columns of a result in types that COPY loads. Text is converted by Redshift when the rows are inserted.
fn loadable(columns: &[Column]) -> Vec<Column> {
    let as_text = |column: Column| {
        let field = schema(std::slice::from_ref(&column)).field(0).data_type().clone();
        match field {
            DataType::Decimal256(..) => Column { kind: ColumnType::Text, ..column },
            _ => column,
        }
    };
    columns.iter().cloned().map(exportable).map(as_text).collect()
}

/// The same for a column of an export, whose values the database sends in its own form.
pub(crate) fn exportable(column: Column) -> Column {
    let sql_type = column.sql_type.to_ascii_lowercase();
    let is_unsigned = sql_type.contains("unsigned") || sql_type.starts_with("bit");
    let (kind, sql_type) = match column.kind {
        ColumnType::Int if is_unsigned => (ColumnType::Numeric, "numeric(20,0)".to_owned()),
        ColumnType::Other if sql_type.ends_with("[]") => (ColumnType::Json, column.sql_type),
        kind => (kind, column.sql_type),
    };
    Column { name: column.name, kind, sql_type, nullable: true }
}

fn staged_columns(definition: &JobType, schema: &SchemaRef) -> Result<Vec<StagedColumn>> {
    let staged = schema.fields().iter().map(|field| {
        let sql_type = redshift_type(field)
            .map_err(|error| definition.problem("load.copy", error.to_string()))?;
        Ok(StagedColumn { name: field.name().clone(), sql_type })
    });
    staged.collect()
}

/// Refuses columns that COPY cannot load.
pub(crate) fn check_columns(definition: &JobType, columns: &[Column]) -> Result<()> {
    let columns = match definition.step.kind {
        StepKind::Export(_) => columns.iter().cloned().map(exportable).collect(),
        _ => loadable(columns),
    };
    staged_columns(definition, &schema(&columns)).map(drop)
}
