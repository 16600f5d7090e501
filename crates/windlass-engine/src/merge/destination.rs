//! Where a job's parts and its report go, and what is written there.

use crate::EngineError;
use crate::Result;
use crate::job_context::JobContext;
use windlass_connectors::Rows;
use windlass_core::problem::Code;
use windlass_core::{
    Column, ColumnType, Export, Identity, JobId, JobType, Problem, Report, Request, StepKind, Value,
};
use windlass_export::{
    Compression, Destination, Format, Manifest, ManifestPart, Output, PartName, PartWriter,
    RecordBatch, RowBuilder, SchemaRef, TemplateVars, Written, scan_orphans, schema, schema_of,
};
use windlass_store::{JobSnapshot, Kept, MERGED, NewPart, PartRow};

/// The parts of an export: where they go, in which form.
pub(crate) struct JobDestination {
    place: Destination,
    output: Output,
    schema: SchemaRef,
    pub(crate) columns: Vec<Column>,
}

/// Rows of a batch on its way into a report.
const BATCH: usize = 8192;
/// Parts listed at once.
const PARTS: u32 = 1000;

impl JobDestination {
    /// The destination of a job that exports.
    pub(crate) fn of(job: &JobContext) -> Result<Option<JobDestination>> {
        let StepKind::Export(export) = &job.definition().step.kind else { return Ok(None) };
        let place = Destination::open(&fill(&job.snapshot, &export.to)?)?;
        let columns = columns(job, export)?;
        let (output, schema) = (output(export)?, schema(&columns));
        Ok(Some(JobDestination { place, output, schema, columns }))
    }

    /// Writes the rows that arrive as a chunk's part. It is there whole, or not at all.
    pub(crate) async fn write(
        &self,
        part: PartName,
        mut rows: tokio::sync::mpsc::Receiver<RecordBatch>,
    ) -> Result<NewPart> {
        let name = part.file(self.output);
        let mut writer = PartWriter::new(&self.place, name, self.schema.clone(), self.output)?;
        while let Some(batch) = rows.recv().await {
            writer.write(batch).await?;
        }
        Ok(kept(writer.finish().await?))
    }

    /// Lists exactly these parts in the manifest, and removes what workers that lost a chunk left.
    /// Nothing of it where the merge is not ours any more.
    pub(crate) async fn close(
        &self,
        job: &JobContext,
        parts: &[PartRow],
        ours: impl Future<Output = Result<Kept>>,
    ) -> Result<Option<NewPart>> {
        let listed = parts.iter().map(|row| {
            let part = PartName { chunk: row.chunk, epoch: row.epoch, nonce: row.nonce };
            ManifestPart::new(part, written(&row.part))
        });
        let (id, name) = (job.snapshot.id.to_string(), job.definition().name.clone());
        let manifest = Manifest::new(id, name, self.output, &self.schema, listed.collect())?;
        let found = scan_orphans(&self.place, &manifest).await?;
        if let Some(missing) = found.missing.first() {
            let cause = format!("`{missing}` of {} is not there any more", self.place.url());
            return Err(
                windlass_core::Problem::new(windlass_core::problem::Code::Source, cause).into()
            );
        }
        if ours.await? == Kept::Lost {
            return Ok(None);
        }
        manifest.write(&self.place).await?;
        found.delete_orphans(&self.place).await?;
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        Ok(Some(NewPart {
            name: Some(format!("{}manifest.json", self.place.url())),
            rows: manifest.totals.rows as i64,
            bytes: manifest.totals.bytes as i64,
            sha256: manifest.totals.content_hash.clone(),
            content_hash: manifest.totals.content_hash.clone(),
            content: Some(text),
        }))
    }

    /// Removes everything that a cancelled job has put here, first of all what lists it. Whether it is
    /// still cancelled is asked after the listing: in a store that was restored it may be running, and a
    /// part of its new claim must stay.
    pub(crate) async fn clear(
        &self,
        job: &JobContext,
        cancelled: impl Future<Output = Result<bool>>,
    ) -> Result<()> {
        let (id, name) = (job.snapshot.id.to_string(), job.definition().name.clone());
        let none = Manifest::new(id, name, self.output, &self.schema, Vec::new())?;
        let found = scan_orphans(&self.place, &none).await?;
        if !cancelled.await? {
            return Ok(());
        }
        Manifest::remove(&self.place).await?;
        Ok(found.delete_orphans(&self.place).await?)
    }
}

/// Removes the part of a claim that was lost or handed back after all of it was written. Where the
/// job was cancelled meanwhile, its output has been removed, and nobody would look again.
pub(crate) async fn forget(job: &JobContext, part: &NewPart) {
    let removed = async {
        match (JobDestination::of(job)?, &part.name) {
            (Some(destination), Some(name)) => Ok(destination.place.remove(name).await?),
            _ => Ok::<_, EngineError>(()),
        }
    };
    if let Err(error) = removed.await {
        tracing::warn!(job = %job.snapshot.id, %error, "a part that does not count stays");
    }
}

/// Writes a report, replacing the one that is there whole; not where the merge is not ours any more,
/// since by then it may be that of a later job.
pub(crate) async fn report(
    job: &JobContext,
    report: &Report,
    result: &Rows,
    ours: impl Future<Output = Result<Kept>>,
) -> Result<Kept> {
    let url = fill(&job.snapshot, &report.to)?;
    let (folder, name) = Destination::split(&url)?;
    let output = Output::of_file(name)?;
    let columns: Vec<Column> = result
        .columns
        .iter()
        .enumerate()
        .map(|(n, column)| known(column, n, &result.rows))
        .collect();
    let schema = schema_of(&columns, &result.rows);
    let mut builder = RowBuilder::new(schema.clone())?;
    let mut writer = PartWriter::new(&Destination::open(folder)?, name, schema, output)?;
    for rows in result.rows.chunks(BATCH) {
        for row in rows {
            builder.push(row)?;
        }
        writer.write(builder.finish()?).await?;
    }
    if ours.await? == Kept::Lost {
        return Ok(Kept::Lost);
    }
    writer.finish().await?;
    Ok(Kept::Yes)
}

/// Writes the page of a report beside it, under the same condition. Its name is the report's own and
/// `.html`, so that reports that differ in their format alone do not share one.
pub(crate) async fn page(
    job: &JobContext,
    report: &Report,
    page: String,
    ours: impl Future<Output = Result<Kept>>,
) -> Result<Kept> {
    let url = format!("{}.html", fill(&job.snapshot, &report.to)?);
    let (folder, name) = Destination::split(&url)?;
    let folder = Destination::open(folder)?;
    if ours.await? == Kept::Lost {
        return Ok(Kept::Lost);
    }
    folder.put(name, page.into_bytes()).await?;
    Ok(Kept::Yes)
}

/// All parts of a job but what was made of them.
pub(crate) async fn parts(
    engine: &crate::Engine,
    job: windlass_core::JobId,
) -> Result<Vec<PartRow>> {
    let mut all: Vec<PartRow> = Vec::new();
    loop {
        let after = all.last().map_or(MERGED, |part| part.chunk);
        let page = engine.store().parts(job, after, PARTS).await?;
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
    // Of what a table does not declare nobody knows the type but each record: all of it is text.
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
            let detail = format!("there is no column `{name}`; there is {known}");
            EngineError::from(job.definition().problem("step.export.columns", detail))
        })
    };
    export.columns.iter().map(column).collect()
}

/// A place with its words filled in. The date is the job's own: its param, or the day it was
/// submitted on, which its id knows.
pub(crate) fn fill(job: &JobSnapshot, template: &str) -> Result<String> {
    fill_for(job.id, &job.definition, &job.request, &job.identity, template)
}

/// Refuses a request whose params or claims could not stand in the name of a file, before anything
/// is written.
pub(crate) fn check_places(
    definition: &JobType,
    request: &Request,
    identity: &Identity,
) -> Result<()> {
    let export = match &definition.step.kind {
        StepKind::Export(export) => Some(&export.to),
        _ => None,
    };
    for template in definition.report.iter().map(|report| &report.to).chain(export) {
        let filled = fill_for(JobId::now_v7(), definition, request, identity, template);
        if let Err(error) = filled {
            let is_claim = template.contains("{claim:") && error.to_string().contains("claim");
            let field = if is_claim { "claims.path" } else { "params" };
            return Err(Problem::field(Code::Request, field, error.to_string()).into());
        }
    }
    Ok(())
}

fn fill_for(
    id: JobId,
    definition: &JobType,
    request: &Request,
    identity: &Identity,
    template: &str,
) -> Result<String> {
    let params: serde_json::Map<_, _> = request.params.clone().into_iter().collect();
    let submitted = id.get_timestamp().map_or(0, |time| time.to_unix().0);
    let texts = |values: &[Value]| values.iter().filter_map(Value::to_text).collect();
    let claims = identity.claims.iter().map(|(name, values)| (name.clone(), texts(values)));
    let (id, claims) = (id.to_string(), claims.collect());
    let of_id =
        chrono::DateTime::from_timestamp(submitted as i64, 0).unwrap_or_default().date_naive();
    let of_params = params.get("date").and_then(|date| date.as_str()?.parse().ok());
    let words = TemplateVars {
        job_id: &id,
        job_type: &definition.name,
        date: of_params.unwrap_or(of_id),
        params: &params,
        claims: &claims,
    };
    Ok(windlass_export::fill_template(template, words)?)
}

/// A column whose database does not say its type, as SQLite of an expression: that of its values.
fn known(column: &Column, place: usize, rows: &[Vec<Value>]) -> Column {
    if column.kind != ColumnType::Other || !column.sql_type.is_empty() {
        return column.clone();
    }
    let mut kind = None;
    for row in rows {
        let next = match row.get(place) {
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

fn kept(written: Written) -> NewPart {
    NewPart {
        name: Some(written.name),
        rows: written.rows as i64,
        bytes: written.bytes as i64,
        sha256: written.sha256,
        content_hash: written.content_hash,
        content: None,
    }
}

fn written(part: &NewPart) -> Written {
    Written {
        name: part.name.clone().unwrap_or_default(),
        rows: part.rows as u64,
        bytes: part.bytes as u64,
        sha256: part.sha256.clone(),
        content_hash: part.content_hash.clone(),
    }
}
