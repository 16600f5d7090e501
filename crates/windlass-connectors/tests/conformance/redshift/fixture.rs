//! A table in Redshift, and Parquet files with a manifest in S3.

use std::sync::Arc;
use uuid::Uuid;
use windlass_connectors::{
    Bound, Connection, ConnectorError, CopyRequest, Fence, Ledger, Params, StagedColumn, connect,
};
use windlass_core::{ChunkId, Column, ColumnType, Cursor, JobId, Load, Value};
use windlass_export::{
    Destination, PartWriter, RowBuilder, redshift_output, redshift_type, schema,
    write_redshift_manifest,
};
use windlass_testkit::{Database, Moto, PostgresServer, RedshiftServer};

/// The number of a load in the ledger.
pub(super) const MERGED: i64 = -1;

pub(super) struct RedshiftFixture {
    pub(super) database: Database,
    pub(super) server: RedshiftServer,
    pub(super) connection: Arc<dyn Connection>,
    pub(super) folder: Destination,
}

/// Files in S3, ready to be loaded.
pub(super) struct Files {
    pub(super) manifest: String,
    pub(super) columns: Vec<StagedColumn>,
    pub(super) rows: i64,
    pub(super) objects: Vec<(String, u64)>,
}

impl RedshiftFixture {
    pub(super) async fn new() -> RedshiftFixture {
        let database = PostgresServer::shared().database().await;
        database
            .run("CREATE TABLE totals (day date, branch varchar(20), n integer, total numeric(12,2))")
            .await;
        let server = RedshiftServer::start(&database, Moto::shared()).await;
        let connection = connect(&server.url(), 4).await.unwrap();
        connection.prepare().await.unwrap();
        let url = format!("s3://{}/{}/", Moto::BUCKET, Uuid::now_v7());
        let folder = Destination::open_with(&url, Moto::shared().environment()).unwrap();
        RedshiftFixture { database, server, connection, folder }
    }

    /// One row of each of two days, as an earlier job left them.
    pub(super) async fn reset(&self) {
        let rows = "('2025-01-01', 'old', 1, 1), ('2024-12-31', 'old', 1, 1)";
        self.database.run(&format!("TRUNCATE totals; INSERT INTO totals VALUES {rows}")).await;
    }

    /// The rows of the table, in order.
    pub(super) async fn totals(&self) -> String {
        let rows = "SELECT coalesce(string_agg(concat_ws(' ', day, branch, n, total), ', ' \
                    ORDER BY day, branch), '') FROM totals";
        self.database.one(rows).await
    }

    /// Writes rows as two files and a manifest.
    pub(super) async fn files(&self, columns: &[Column], rows: &[Vec<Value>]) -> Files {
        let schema = schema(columns);
        let staged = schema.fields().iter().map(|field| StagedColumn {
            name: field.name().clone(),
            sql_type: redshift_type(field).unwrap(),
        });
        let id = Uuid::now_v7();
        let mut objects = Vec::new();
        for (number, rows) in rows.chunks(rows.len().div_ceil(2).max(1)).enumerate() {
            let mut builder = RowBuilder::new(schema.clone()).unwrap();
            rows.iter().for_each(|row| builder.push(row).unwrap());
            let name = format!("{id}-{number}.parquet");
            let output = redshift_output().unwrap();
            let mut writer = PartWriter::new(&self.folder, name, schema.clone(), output).unwrap();
            writer.write(builder.finish().unwrap()).await.unwrap();
            let written = writer.finish().await.unwrap();
            objects.push((self.folder.object_url(&written.name), written.bytes));
        }
        let name = format!("{id}.manifest");
        let manifest = write_redshift_manifest(&self.folder, &name, objects.clone()).await.unwrap();
        Files { manifest, columns: staged.collect(), rows: rows.len() as i64, objects }
    }

    /// Three branches of a day, without the day.
    pub(super) async fn branches(&self) -> Files {
        let columns = [
            column("branch", ColumnType::Text, "text"),
            column("n", ColumnType::Int, "bigint"),
            column("total", ColumnType::Numeric, "numeric"),
        ];
        let row = |name: &str, n: i64| {
            vec![Value::from(name), Value::Int(n), Value::from(format!("{n}.50"))]
        };
        self.files(&columns, &[row("a", 1), row("b", 2), row("c", 3)]).await
    }

    /// Fences the load of a job.
    pub(super) async fn fence(
        &self,
        job: JobId,
        epoch: i64,
    ) -> Result<Option<Ledger>, ConnectorError> {
        let chunk = ChunkId { job, number: MERGED };
        let fence = Fence { chunk, epoch, nonce: epoch * 7, lost: false };
        Ok(self.connection.fence(&[fence]).await?.pop().unwrap())
    }

    /// Loads files for the first day of 2025.
    pub(super) async fn copy(
        &self,
        ledger: &Ledger,
        files: &Files,
    ) -> Result<Ledger, ConnectorError> {
        self.copy_as(ledger, files, &load(&["day"]), &params("2025-01-01"), &[]).await
    }

    pub(super) async fn copy_as(
        &self,
        ledger: &Ledger,
        files: &Files,
        load: &Load,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Ledger, ConnectorError> {
        let request = CopyRequest {
            load,
            manifest: Some(&files.manifest),
            iam_role: "arn:aws:iam::123456789012:role/copy",
            columns: &files.columns,
            rows: files.rows,
            params,
            bounds,
        };
        self.connection.copy(ledger, request).await
    }

    /// Loads as a worker does after each failure: with the next epoch, until the load is committed.
    pub(super) async fn load_until_committed(&self, job: JobId, files: &Files) {
        for epoch in 1..10 {
            match self.fence(job, epoch).await {
                Ok(Some(ledger)) if ledger.cursor == Cursor::End => return,
                Ok(Some(ledger)) => {
                    if let Ok(loaded) = self.copy(&ledger, files).await {
                        assert_eq!(loaded.cursor, Cursor::End);
                        return;
                    }
                }
                Ok(None) => panic!("an epoch that is higher than all others was refused"),
                Err(error) => assert!(error.class().is_some(), "{error}"),
            }
        }
        panic!("the load is not committed after ten attempts");
    }
}

/// The rows after a load of [`RedshiftFixture::branches`].
pub(super) const LOADED: &str =
    "2024-12-31 old 1 1.00, 2025-01-01 a 1 1.50, 2025-01-01 b 2 2.50, 2025-01-01 c 3 3.50";

pub(super) fn column(name: &str, kind: ColumnType, sql_type: &str) -> Column {
    Column { name: name.to_owned(), kind, sql_type: sql_type.to_owned(), nullable: true }
}

pub(super) fn load(replace: &[&str]) -> Load {
    Load::into_table("warehouse", "totals", replace.iter().copied())
}

pub(super) fn params(day: &str) -> Params {
    Params::from([("day".to_owned(), day.into())])
}
