//! The tables of the job types: clients of their connections, and what DynamoDB says of them.

use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use windlass_core::problem::Code;
use windlass_core::{Column, ColumnType, Config, Index, JobType, Problem, Table};
use windlass_db::dynamodb::sdk::Client;
use windlass_db::dynamodb::sdk::types::{KeySchemaElement, KeyType, ScalarAttributeType};
use windlass_db::dynamodb::settings;

/// The tables of one process, asked for once.
#[derive(Default)]
pub(crate) struct Tables {
    clients: Mutex<HashMap<String, Client>>,
    described: Mutex<HashMap<String, Arc<Described>>>,
}

/// What DynamoDB says of a table.
pub(crate) struct Described {
    /// In the engine's words; its columns are those of the keys.
    pub(crate) table: Table,
    /// The names of the indexes by the attribute that they are partitioned by.
    pub(crate) indexes: HashMap<String, String>,
}

impl Tables {
    /// The client of a job type's connection.
    pub(crate) async fn client(&self, config: &Config, job_type: &JobType) -> Result<Client> {
        let name = &job_type.source.connection;
        let mut clients = self.clients.lock().await;
        if let Some(client) = clients.get(name) {
            return Ok(client.clone());
        }
        let url = config.connections.get(name).map_or("", |connection| connection.url.as_str());
        if !url.trim().starts_with("dynamodb:") {
            let detail = format!("`{name}` is no DynamoDB, and on AWS only that is worked");
            return Err(job_type.problem("source.connection", detail).into());
        }
        let settings = settings(url).await.map_err(Error::aws(format!("connections.{name}")))?;
        let client = Client::new(&settings);
        clients.insert(name.clone(), client.clone());
        Ok(client)
    }

    /// The definition with its key: the table's own where the file does not say.
    pub(crate) async fn resolved(&self, config: &Config, job_type: &JobType) -> Result<JobType> {
        let mut resolved = job_type.clone();
        if resolved.source.key.is_empty() {
            resolved.source.key = self.describe(config, job_type).await?.table.primary_key.clone();
        }
        Ok(resolved)
    }

    /// What DynamoDB says of a job type's table.
    pub(crate) async fn describe(
        &self,
        config: &Config,
        job_type: &JobType,
    ) -> Result<Arc<Described>> {
        let table = table_of(job_type)?;
        let known = format!("{} {table}", job_type.source.connection);
        let mut described = self.described.lock().await;
        if let Some(described) = described.get(&known) {
            return Ok(described.clone());
        }
        let client = self.client(config, job_type).await?;
        let answer = client.describe_table().table_name(table).send().await;
        let answer = answer.map_err(Error::aws(format!("the table `{table}`")))?;
        let answer = answer.table.ok_or_else(|| {
            Problem::new(Code::Source, format!("DynamoDB says nothing of the table `{table}`"))
        })?;
        let columns = answer.attribute_definitions().iter().map(|attribute| Column {
            name: attribute.attribute_name().to_owned(),
            kind: kind(attribute.attribute_type()),
            sql_type: attribute.attribute_type().as_str().to_owned(),
            nullable: false,
        });
        let global = answer.global_secondary_indexes().iter();
        let local = answer.local_secondary_indexes().iter();
        let schemas = global
            .map(|index| (index.index_name(), index.key_schema()))
            .chain(local.map(|index| (index.index_name(), index.key_schema())))
            .map(|(name, schema)| (name.unwrap_or_default().to_owned(), columns_of(schema)));
        let schemas: Vec<(String, Vec<String>)> = schemas.collect();
        let partition = |(name, columns): &(String, Vec<String>)| {
            columns.first().map(|column| (column.clone(), name.clone()))
        };
        let one = Arc::new(Described {
            indexes: schemas.iter().filter_map(partition).collect(),
            table: Table {
                name: table.to_owned(),
                columns: columns.collect(),
                primary_key: columns_of(answer.key_schema()),
                indexes: schemas
                    .into_iter()
                    .map(|(_, columns)| Index { columns, unique: false })
                    .collect(),
                estimated_rows: answer.item_count().unwrap_or_default().try_into().unwrap_or(0),
                plain: true,
            },
        });
        described.insert(known, one.clone());
        Ok(one)
    }
}

/// The table's name; queries are of SQL.
pub(crate) fn table_of(job_type: &JobType) -> Result<&str> {
    let missing = || job_type.problem("source.table", "is missing; name a table of DynamoDB");
    Ok(job_type.source.table.as_deref().ok_or_else(missing)?)
}

/// The partition key, then the sort key.
fn columns_of(schema: &[KeySchemaElement]) -> Vec<String> {
    let mut schema: Vec<&KeySchemaElement> = schema.iter().collect();
    schema.sort_by_key(|element| *element.key_type() != KeyType::Hash);
    schema.iter().map(|element| element.attribute_name().to_owned()).collect()
}

fn kind(attribute: &ScalarAttributeType) -> ColumnType {
    match attribute {
        ScalarAttributeType::N => ColumnType::Numeric,
        ScalarAttributeType::B => ColumnType::Bytes,
        _ => ColumnType::Text,
    }
}
