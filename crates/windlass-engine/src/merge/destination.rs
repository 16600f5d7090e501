//! Writes the parts, the manifest and the report of a job to a folder or an object store.

use crate::EngineError;
use crate::Result;
use crate::job_context::JobContext;
use crate::merge::copy;
use crate::operate::files::FileContent;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use windlass_connectors::Rows;
use windlass_core::problem::Code;
use windlass_core::{
    Column, ColumnType, Export, Identity, JobId, JobType, Problem, Report, Request, StepKind, Value,
};
use windlass_export::{
    Compression, Destination, Format, Manifest, ManifestPart, Output, PartName, PartWriter,
    RecordBatch, RowBuilder, SchemaRef, TemplateVars, Written, columns_in, redshift_output,
    scan_orphans, schema, schema_of,
};
use windlass_store::{JobSnapshot, MERGED, NewPart, PartRow, REPLACED};

/// Where and in which format a job exports its parts.
pub(crate) struct JobDestination {
    location: Destination,
    output: Output,
    schema: SchemaRef,
    pub(crate) columns: Vec<Column>,
}

/// Rows written to a report at once.
const REPORT_BATCH_ROWS: usize = 8192;
/// Parts listed per page.
const PARTS_PER_PAGE: u32 = 1000;

impl JobDestination {
    /// The destination of a job; `None` if its step is not `export`.
    pub(crate) fn of(job: &JobContext) -> Result<Option<JobDestination>> {
        let StepKind::Export(export) = &job.definition().step.kind else { return Ok(None) };
        let location = Destination::open(&fill_template(&job.snapshot, &export.to)?)?;
        let is_copied = job.definition().load.as_ref().is_some_and(|load| load.copy.is_some());
        let output = if is_copied { redshift_output()? } else { output(export)? };
        let mut columns = columns_in(output.format(), columns(job, export)?);
        if is_copied {
            columns = columns.into_iter().map(copy::exportable).collect();
            copy::check_columns(job.definition(), &columns)?;
        }
        let schema = schema(&columns);
        Ok(Some(JobDestination { location, output, schema, columns }))
    }

    pub(crate) fn location(&self) -> &Destination {
        &self.location
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Writes the received rows as the part of a chunk. The part becomes visible as a whole or not at
    /// all.
    pub(crate) async fn write(
        &self,
        part: PartName,
        mut rows: tokio::sync::mpsc::Receiver<RecordBatch>,
    ) -> Result<NewPart> {
        let name = part.file(self.output);
        let mut writer = PartWriter::new(&self.location, name, self.schema.clone(), self.output)?;
        while let Some(batch) = rows.recv().await {
            writer.write(batch).await?;
        }
        Ok(new_part(writer.finish().await?))
    }

    /// Writes a manifest that lists exactly these parts, and deletes orphaned parts of workers that
    /// lost their lease. Does nothing if the lease of the merge is lost, which `ours` tells.
    pub(crate) async fn write_manifest(
        &self,
        job: &JobContext,
        parts: &[PartRow],
        confirm_lease: impl Future<Output = Result<()>>,
    ) -> Result<NewPart> {
        let listed = parts.iter().map(|row| {
            let part = PartName { chunk: row.chunk, epoch: row.epoch, nonce: row.nonce };
            ManifestPart::new(part, written_part(&row.part))
        });
        let (id, name) = (job.snapshot.id.to_string(), job.definition().name.clone());
        let manifest = Manifest::new(id, name, self.output, &self.schema, listed.collect())?;
        let found = scan_orphans(&self.location, &manifest).await?;
        if let Some(missing) = found.missing.first() {
            let cause = format!("part `{missing}` is missing in {}", self.location.url());
            return Err(
                windlass_core::Problem::new(windlass_core::problem::Code::Source, cause).into()
            );
        }
        confirm_lease.await?;
        manifest.write(&self.location).await?;
        found.delete_orphans(&self.location).await?;
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        Ok(NewPart {
            name: Some(format!("{}manifest.json", self.location.url())),
            rows: manifest.totals.rows as i64,
            bytes: manifest.totals.bytes as i64,
            sha256: manifest.totals.content_hash.clone(),
            content_hash: manifest.totals.content_hash.clone(),
            content: Some(text),
        })
    }

    /// Deletes everything that a cancelled job has written here, the manifest first. `cancelled` is
    /// awaited after the files are listed: if the store was restored, the job may be running again, and
    /// parts written since must stay.
    pub(crate) async fn delete_all(
        &self,
        job: &JobContext,
        cancelled: impl Future<Output = Result<bool>>,
    ) -> Result<()> {
        let (id, name) = (job.snapshot.id.to_string(), job.definition().name.clone());
        let empty = Manifest::new(id, name, self.output, &self.schema, Vec::new())?;
        let found = scan_orphans(&self.location, &empty).await?;
        if !cancelled.await? {
            return Ok(());
        }
        Manifest::remove(&self.location).await?;
        self.location.remove(copy::EXPORT_MANIFEST).await?;
        Ok(found.delete_orphans(&self.location).await?)
    }
}

/// Deletes a part that was written completely before its lease was lost or handed back. If the job was
/// cancelled meanwhile, its output is already deleted and no later clean-up would find this part.
pub(crate) async fn delete_orphaned_part(job: &JobContext, part: &NewPart) {
    let deleted = async {
        match (JobDestination::of(job)?, &part.name) {
            (Some(destination), Some(name)) => Ok(destination.location.remove(name).await?),
            _ => Ok::<_, EngineError>(()),
        }
    };
    if let Err(error) = deleted.await {
        let part = part.name.as_deref().unwrap_or_default();
        tracing::warn!(job = %job.snapshot.id, part, %error, "could not delete orphaned part file");
    }
}

/// Writes a report and replaces an existing one atomically. It is recorded before it becomes visible;
/// `record` fails if the lease of the merge is lost: by then the report of a later job may be there.
/// `earlier` is what an earlier attempt recorded.
pub(crate) async fn write_report(
    job: &JobContext,
    report: &Report,
    result: &Rows,
    earlier: Option<NewPart>,
    record: impl AsyncFnOnce(&NewPart) -> Result<()>,
) -> Result<NewPart> {
    let url = fill_template(&job.snapshot, &report.to)?;
    let (folder, name) = Destination::split(&url)?;
    let output = Output::of_file(name)?;
    let columns: Vec<Column> = result
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| infer_type(column, index, &result.rows))
        .collect();
    let columns = columns_in(output.format(), columns);
    let schema = schema_of(&columns, &result.rows);
    let mut builder = RowBuilder::new(schema.clone())?;
    let folder = Destination::open(folder)?;
    let mut writer = PartWriter::new(&folder, name, schema, output)?;
    for rows in result.rows.chunks(REPORT_BATCH_ROWS) {
        for row in rows {
            builder.push(row)?;
        }
        writer.write(builder.finish()?).await?;
    }
    let sealed = writer.seal().await?;
    let replaced = match &earlier {
        Some(earlier) if earlier.content.is_some() => true,
        Some(earlier) => folder.sha256(name).await?.is_some_and(|(hash, _)| hash != earlier.sha256),
        None => folder.exists(name).await?,
    };
    let content = replaced.then(|| REPLACED.to_vec());
    let written =
        NewPart { name: Some(url.clone()), content, ..new_part(sealed.written().clone()) };
    record(&written).await?;
    sealed.publish().await?;
    tracing::info!(job = %job.snapshot.id, url, rows = written.rows, bytes = written.bytes,
        "report written");
    Ok(written)
}

/// The chunk of a part by the name of its file.
pub(crate) fn chunk_of_part(name: &str) -> Option<i64> {
    PartName::parse(name).map(|part| part.chunk)
}

/// Opens a file that a job wrote. `None` if there is none; with a hash, also if the file has another
/// content, because then another job has replaced it.
pub(crate) async fn open_file(url: &str, sha256: Option<&str>) -> Result<Option<FileContent>> {
    let (folder, name) = Destination::split(url)?;
    let folder = Destination::open(folder)?;
    let version = match sha256 {
        None => None,
        Some(sha256) => match folder.sha256(name).await? {
            Some((hash, version)) if hash == sha256 => version,
            _ => return Ok(None),
        },
    };
    let found = folder.open_object(name, version).await?;
    Ok(found.map(|object| {
        let pieces = object.content.map_ok(|piece| piece.to_vec());
        FileContent { bytes: object.bytes, content: pieces.map_err(EngineError::from).boxed() }
    }))
}

/// Deletes the report of a cancelled job, and its page. A report that replaced another file stays, because
/// the other file cannot be restored; the returned note says so. A file with another content belongs to
/// another job and stays too.
pub(crate) async fn remove_report(job: JobId, report: &NewPart) -> Result<Option<String>> {
    let url = report.name.as_deref().unwrap_or_default();
    let (folder, name) = Destination::split(url)?;
    let folder = Destination::open(folder)?;
    let is_ours = folder.sha256(name).await?.is_some_and(|(hash, _)| hash == report.sha256);
    if !is_ours {
        return Ok(None);
    }
    if report.content.is_some() {
        let note = format!(
            "the report {url} was written before the job was cancelled; it replaced an earlier file \
             and was not deleted"
        );
        return Ok(Some(note));
    }
    folder.remove(name).await?;
    folder.remove(&format!("{name}.html")).await?;
    tracing::info!(%job, url, "report of the cancelled job deleted");
    Ok(None)
}

/// Writes the HTML page of a report next to it, under the same condition. Its name is the full name of
/// the report plus `.html`, so that reports that differ only in their format have separate pages.
#[cfg(feature = "html")]
pub(crate) async fn write_report_page(
    job: &JobContext,
    report: &Report,
    page: String,
    confirm_lease: impl Future<Output = Result<()>>,
) -> Result<()> {
    let url = format!("{}.html", fill_template(&job.snapshot, &report.to)?);
    let (folder, name) = Destination::split(&url)?;
    let folder = Destination::open(folder)?;
    confirm_lease.await?;
    folder.put(name, page.into_bytes()).await?;
    Ok(())
}

/// All parts of a job, without the merged result.
pub(crate) async fn list_parts(
    engine: &crate::Engine,
    job: windlass_core::JobId,
) -> Result<Vec<PartRow>> {
    let mut all: Vec<PartRow> = Vec::new();
    loop {
        let after = all.last().map_or(MERGED, |part| part.chunk);
        let page = engine.store().parts(job, after, PARTS_PER_PAGE).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

fn output(export: &Export) -> Result<Output> {
    let format = Format::named(&export.format)?;
    Ok(match export.compression.as_deref() {
        Some("gzip") => Output::with(format, Compression::Gzip)?,
        _ => Output::of(format),
    })
}

fn columns(job: &JobContext, export: &Export) -> Result<Vec<Column>> {
    let table = &job.scope.table;
    if export.columns.is_empty() {
        return Ok(table.columns.clone());
    }
    // Undeclared attributes may have another type in each record, so they are exported as text.
    let undeclared = |name: &String| {
        table.open.then(|| Column {
            name: name.clone(),
            kind: ColumnType::Text,
            sql_type: String::new(),
            nullable: true,
        })
    };
    let column = |name: &String| {
        table.column(name).cloned().or_else(|| undeclared(name)).ok_or_else(|| {
            let known = windlass_core::config::names(table.columns.iter().map(|c| &c.name));
            let detail = format!("there is no column `{name}`; the columns are {known}");
            EngineError::from(job.definition().problem("step.export.columns", detail))
        })
    };
    export.columns.iter().map(column).collect()
}

/// A path template with its variables filled in. `{date}` is the job's date.
pub(crate) fn fill_template(job: &JobSnapshot, template: &str) -> Result<String> {
    fill_template_for(job.id, &job.definition, &job.request, &job.identity, template)
}

/// Rejects a request whose params or claims cannot be used in a file name, before anything is written.
pub(crate) fn check_destinations(
    definition: &JobType,
    request: &Request,
    identity: &Identity,
) -> Result<()> {
    let export = match &definition.step.kind {
        StepKind::Export(export) => Some(&export.to),
        _ => None,
    };
    let copy = definition.load.as_ref().and_then(|load| load.copy.as_ref()?.from.as_ref());
    for template in definition.report.iter().map(|report| &report.to).chain(export).chain(copy) {
        let filled = fill_template_for(JobId::now_v7(), definition, request, identity, template);
        if let Err(error) = filled {
            let is_claim = template.contains("{claim:") && error.to_string().contains("claim");
            let field = if is_claim { "claims.path" } else { "params" };
            return Err(Problem::field(Code::Request, field, error.to_string()).into());
        }
    }
    Ok(())
}

fn fill_template_for(
    id: JobId,
    definition: &JobType,
    request: &Request,
    identity: &Identity,
    template: &str,
) -> Result<String> {
    let params: serde_json::Map<_, _> = request.params.clone().into_iter().collect();
    let texts = |values: &[Value]| values.iter().filter_map(Value::to_text).collect();
    let claims = identity.claims.iter().map(|(name, values)| (name.clone(), texts(values)));
    let date = definition.date_of(&request.params, id);
    let (id, claims) = (id.to_string(), claims.collect());
    let variables = TemplateVars {
        job_id: &id,
        job_type: &definition.name,
        date,
        params: &params,
        claims: &claims,
    };
    Ok(windlass_export::fill_template(template, variables)?)
}

/// A column with the type of its values, if the database reports none, as SQLite does for expressions.
fn infer_type(column: &Column, index: usize, rows: &[Vec<Value>]) -> Column {
    if column.kind != ColumnType::Other || !column.sql_type.is_empty() {
        return column.clone();
    }
    let mut kind = None;
    for row in rows {
        let next = match row.get(index) {
            None | Some(Value::Null) => continue,
            Some(Value::Int(_)) => ColumnType::Int,
            Some(Value::Float(_)) => ColumnType::Float,
            Some(Value::Bool(_)) => ColumnType::Bool,
            Some(Value::Bytes(_)) => ColumnType::Bytes,
            Some(_) => ColumnType::Text,
        };
        kind = match kind {
            None => Some(next),
            Some(known) if known == next => Some(known),
            Some(ColumnType::Int | ColumnType::Float) if next != ColumnType::Text => {
                Some(ColumnType::Float)
            }
            Some(_) => Some(ColumnType::Text),
        };
    }
    Column { kind: kind.unwrap_or(ColumnType::Text), ..column.clone() }
}

fn new_part(written: Written) -> NewPart {
    NewPart {
        name: Some(written.name),
        rows: written.rows as i64,
        bytes: written.bytes as i64,
        sha256: written.sha256,
        content_hash: written.content_hash,
        content: None,
    }
}

fn written_part(part: &NewPart) -> Written {
    Written {
        name: part.name.clone().unwrap_or_default(),
        rows: part.rows as u64,
        bytes: part.bytes as u64,
        sha256: part.sha256.clone(),
        content_hash: part.content_hash.clone(),
    }
}
