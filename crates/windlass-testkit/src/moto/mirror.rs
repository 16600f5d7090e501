//! SQL over DynamoDB tables, so that the same tests run on every database. The tables are copied into SQLite, the
//! statements run there, and changed rows are written back.

use std::collections::{BTreeMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::{Map, Value, json};

use super::Dynamodb;

/// Rows by key, in DynamoDB's JSON.
type Rows = BTreeMap<String, Map<String, Value>>;

impl Dynamodb {
    /// Runs statements as an application would, one after the other without a transaction. A table's key is its
    /// primary key or its first column; each SQL index becomes a secondary index.
    pub fn run(&self, sql: &str) {
        let (db, before) = self.pull(sql);
        db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        self.push(&db, sql, &before);
    }

    /// All values of a query as text, `None` for NULL. The tables of the ledger have the names that they have in
    /// SQL databases.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let (db, _) = self.pull(sql);
        let mut statement = db.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let width = statement.column_count();
        let text = |value: ValueRef<'_>| match value {
            ValueRef::Null => None,
            ValueRef::Integer(value) => Some(value.to_string()),
            ValueRef::Real(value) => Some(value.to_string()),
            ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Some(format!("{bytes:?}")),
        };
        let row = |row: &rusqlite::Row<'_>| (0..width).map(|n| Ok(text(row.get_ref(n)?))).collect();
        let rows = statement.query_map([], row).and_then(Iterator::collect);
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The tables in SQLite, and the original rows of those that the statement mentions.
    fn pull(&self, sql: &str) -> (Connection, BTreeMap<String, Rows>) {
        let db = Connection::open_in_memory().expect("failed to open SQLite");
        for statement in self.schema.lock().expect("the lock is poisoned").iter() {
            db.execute_batch(statement).expect("the statement succeeded before");
        }
        let mut before = BTreeMap::new();
        for table in tables(&db).into_iter().filter(|table| sql.contains(table.as_str())) {
            let columns = columns(&db, &table);
            let mut rows = Rows::new();
            for item in self.scan(&table) {
                insert(&db, &table, columns.iter().map(|column| item.get(&column.name)), &columns);
                rows.insert(key_of(&columns, &item), item);
            }
            before.insert(table, rows);
        }
        if sql.contains("windlass_") {
            self.pull_ledger(&db);
        }
        (db, before)
    }

    fn pull_ledger(&self, db: &Connection) {
        if !self.names().contains(&"windlass_ledger".to_owned()) {
            return;
        }
        db.execute_batch(LEDGER).expect("failed to create the ledger tables");
        for item in self.scan("windlass_ledger") {
            let row = item["row"]["S"].as_str().expect("the row key is not text");
            // The generation of a store, which belongs to no job.
            if row.starts_with("store#") {
                continue;
            }
            let mut parts = row.splitn(3, '#');
            let table = format!("windlass_{}", parts.next().unwrap_or_default());
            let chunk: i64 =
                parts.next().unwrap_or_default().parse().expect("the chunk number is not a number");
            let mut item = item.clone();
            item.insert("job_id".to_owned(), item["job"].clone());
            item.insert("chunk".to_owned(), json!({ "N": (chunk - 1).to_string() }));
            if let Some(key) = item.get("key").cloned() {
                item.insert("item_key".to_owned(), key);
            }
            let columns = columns(db, &table);
            insert(db, &table, columns.iter().map(|column| item.get(&column.name)), &columns);
        }
        // A marker: if the ledger is dropped in SQLite, the one in DynamoDB is dropped too.
        db.execute_batch("PRAGMA user_version = 1").expect("failed to set the marker");
    }

    fn push(&self, db: &Connection, sql: &str, before: &BTreeMap<String, Rows>) {
        let mut statement = db
            .prepare("SELECT sql FROM sqlite_master WHERE sql NOT NULL AND tbl_name NOT LIKE 'windlass%'")
            .expect("failed to read SQLite's schema");
        let schema = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect);
        *self.schema.lock().expect("the lock is poisoned") =
            schema.expect("the schema is not text");
        let had_ledger: i64 = db
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .expect("failed to read the marker");
        let ledger = "SELECT count(*) FROM sqlite_master WHERE name = 'windlass_ledger'";
        let has_ledger: i64 = db.query_row(ledger, [], |row| row.get(0)).expect("failed to count");
        if had_ledger > has_ledger {
            self.call("DeleteTable", json!({ "TableName": "windlass_ledger" }));
        }
        let makes = sql.contains("CREATE");
        let there = if makes { self.names() } else { Vec::new() };
        for table in tables(db).into_iter().filter(|table| sql.contains(table.as_str())) {
            let columns = columns(db, &table);
            match there.contains(&table) {
                _ if !makes => {}
                true => self.add_indexes(db, &table, &columns),
                false => self.create(db, &table, &columns),
            }
            self.replace(&table, &columns, before.get(&table), &rows(db, &table, &columns));
        }
        for gone in before.keys().filter(|table| !tables(db).contains(table)) {
            self.call("DeleteTable", json!({ "TableName": gone }));
        }
    }

    fn create(&self, db: &Connection, table: &str, columns: &[Column]) {
        let key: Vec<&str> = key(columns).map(|column| column.name.as_str()).collect();
        let indexes = indexes(db, table);
        let named = indexes.iter().flat_map(|(_, parts)| parts).map(String::as_str);
        let mut request = json!({
            "TableName": table,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": schema(&key),
            "AttributeDefinitions": declared(columns, key.iter().copied().chain(named)),
        });
        if !indexes.is_empty() {
            let indexes: Vec<Value> = indexes.iter().map(index).collect();
            request["GlobalSecondaryIndexes"] = indexes.into();
        }
        self.call("CreateTable", request);
    }

    fn add_indexes(&self, db: &Connection, table: &str, columns: &[Column]) {
        let described = self.call("DescribeTable", json!({ "TableName": table }));
        let there = described["Table"]["GlobalSecondaryIndexes"].to_string();
        for made in indexes(db, table) {
            if !there.contains(&format!("\"{}\"", made.0)) {
                self.call(
                    "UpdateTable",
                    json!({
                        "TableName": table,
                        "AttributeDefinitions": declared(columns, made.1.iter().map(String::as_str)),
                        "GlobalSecondaryIndexUpdates": [{ "Create": index(&made) }],
                    }),
                );
            }
        }
    }

    /// Writes new and changed rows, and deletes removed ones.
    fn replace(
        &self,
        table: &str,
        columns: &[Column],
        before: Option<&Rows>,
        after: &[(String, Map<String, Value>)],
    ) {
        let none = Rows::new();
        let before = before.unwrap_or(&none);
        let mut requests = Vec::new();
        for (key, item) in after {
            if before.get(key) != Some(item) {
                // Attributes that the SQLite table does not have are kept.
                let mut whole = before.get(key).cloned().unwrap_or_default();
                whole.retain(|name, _| !columns.iter().any(|column| column.name == *name));
                whole.extend(item.clone());
                requests.push(json!({ "PutRequest": { "Item": whole } }));
            }
        }
        let there: HashSet<&String> = after.iter().map(|(key, _)| key).collect();
        for (_, item) in before.iter().filter(|(key, _)| !there.contains(key)) {
            let names: Vec<&str> = key(columns).map(|column| column.name.as_str()).collect();
            let key: Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), item[*name].clone())).collect();
            requests.push(json!({ "DeleteRequest": { "Key": key } }));
        }
        for some in requests.chunks(25) {
            self.call("BatchWriteItem", json!({ "RequestItems": { table: some } }));
        }
    }

    /// All items of a table.
    fn scan(&self, table: &str) -> Vec<Map<String, Value>> {
        let (mut items, mut request) = (Vec::new(), json!({ "TableName": table }));
        loop {
            let page = self.call("Scan", request.clone());
            items.extend(
                page["Items"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|item| item.as_object().cloned()),
            );
            match page.get("LastEvaluatedKey") {
                Some(last) => request["ExclusiveStartKey"] = last.clone(),
                None => return items,
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let listed = self.call("ListTables", json!({}));
        let names = listed["TableNames"].as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }
}

struct Column {
    name: String,
    declared: String,
    /// Its position in the primary key, from 1; 0 if it is not in the key.
    key: i64,
}

impl Column {
    /// The DynamoDB type of a key attribute.
    fn kind(&self) -> &'static str {
        let declared = self.declared.to_ascii_uppercase();
        if ["INT", "NUM", "REAL", "DOUBLE", "BOOL"].iter().any(|kind| declared.contains(kind)) {
            "N"
        } else if declared.contains("BLOB") {
            "B"
        } else {
            "S"
        }
    }
}

fn tables(db: &Connection) -> Vec<String> {
    texts(
        db,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'windlass%' \
               AND name NOT LIKE 'sqlite%'",
    )
}

fn texts(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect);
    rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn columns(db: &Connection, table: &str) -> Vec<Column> {
    let sql = format!("SELECT name, type, pk FROM pragma_table_info('{table}')");
    let mut statement = db.prepare(&sql).expect("failed to read the columns");
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Column { name: row.get(0)?, declared: row.get(1)?, key: row.get(2)? })
    };
    let columns = statement.query_map([], row).and_then(Iterator::collect);
    columns.expect("failed to read the columns")
}

/// The columns of the primary key, or the first column.
fn key(columns: &[Column]) -> impl Iterator<Item = &Column> {
    let mut key: Vec<&Column> = columns.iter().filter(|column| column.key > 0).collect();
    key.sort_by_key(|column| column.key);
    if key.is_empty() {
        key.extend(columns.first());
    }
    key.into_iter()
}

/// The indexes that were created on a table, with their columns.
fn indexes(db: &Connection, table: &str) -> Vec<(String, Vec<String>)> {
    let listed = format!("SELECT name FROM pragma_index_list('{table}') WHERE origin = 'c'");
    let parts = |index: &String| {
        texts(db, &format!("SELECT name FROM pragma_index_info('{index}') ORDER BY seqno"))
    };
    texts(db, &listed).into_iter().map(|index| (index.clone(), parts(&index))).collect()
}

fn index((name, parts): &(String, Vec<String>)) -> Value {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    json!({
        "IndexName": name,
        "KeySchema": schema(&parts),
        "Projection": { "ProjectionType": "ALL" },
    })
}

/// The columns with these names, without duplicates, with their types.
fn declared<'a>(columns: &[Column], names: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let attribute = |name: &str| {
        let column = columns.iter().find(|column| column.name == name);
        json!({ "AttributeName": name, "AttributeType": column.map_or("S", Column::kind) })
    };
    names.into_iter().map(attribute).collect()
}

fn schema(names: &[&str]) -> Vec<Value> {
    let kinds = ["HASH", "RANGE"];
    let part = |(name, kind): (&&str, &str)| json!({ "AttributeName": name, "KeyType": kind });
    names.iter().zip(kinds).map(part).collect()
}

fn key_of(columns: &[Column], item: &Map<String, Value>) -> String {
    key(columns).map(|column| item[&column.name].to_string()).collect()
}

/// The rows of a table as items, ordered by key.
fn rows(db: &Connection, table: &str, columns: &[Column]) -> Vec<(String, Map<String, Value>)> {
    let order: Vec<String> = key(columns).map(|column| format!("\"{}\"", column.name)).collect();
    let sql = format!("SELECT * FROM \"{table}\" ORDER BY {}", order.join(", "));
    let mut statement = db.prepare(&sql).expect("the table does not exist");
    let row = |row: &rusqlite::Row<'_>| {
        let mut item = Map::new();
        for (n, column) in columns.iter().enumerate() {
            let value = match row.get_ref(n)? {
                ValueRef::Null => continue,
                ValueRef::Integer(value) => json!({ "N": value.to_string() }),
                ValueRef::Real(value) => json!({ "N": value.to_string() }),
                ValueRef::Text(text) => json!({ "S": String::from_utf8_lossy(text) }),
                ValueRef::Blob(bytes) => json!({ "B": BASE64.encode(bytes) }),
            };
            item.insert(column.name.clone(), value);
        }
        Ok((key_of(columns, &item), item))
    };
    let rows = statement.query_map([], row).and_then(Iterator::collect);
    rows.unwrap_or_else(|error| panic!("{table}: {error}"))
}

fn insert<'a>(
    db: &Connection,
    table: &str,
    values: impl Iterator<Item = Option<&'a Value>>,
    columns: &[Column],
) {
    let value = |value: Option<&Value>| match value.and_then(Value::as_object) {
        None => Sql::Null,
        Some(typed) => match typed.iter().next().map(|(kind, value)| (kind.as_str(), value)) {
            Some(("N", Value::String(text))) => match text.parse::<i64>() {
                Ok(int) => Sql::Integer(int),
                Err(_) => Sql::Real(text.parse().expect("the value is not a number")),
            },
            Some(("S", Value::String(text))) => Sql::Text(text.clone()),
            Some(("BOOL", Value::Bool(value))) => Sql::Integer(i64::from(*value)),
            Some(("B", Value::String(text))) => {
                Sql::Blob(BASE64.decode(text).expect("the value is not base64"))
            }
            Some(("NULL", _)) | None => Sql::Null,
            Some((_, other)) => Sql::Text(other.to_string()),
        },
    };
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let marks = vec!["?"; columns.len()].join(", ");
    let sql = format!("INSERT INTO \"{table}\" ({}) VALUES ({marks})", names.join(", "));
    let inserted = db.execute(&sql, params_from_iter(values.map(value)));
    inserted.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

const LEDGER: &str = "
    CREATE TABLE windlass_ledger (job_id TEXT, chunk INTEGER, epoch INTEGER, nonce INTEGER, commits INTEGER,
        cursor TEXT, read INTEGER, processed INTEGER, skipped INTEGER, dead INTEGER,
        conflicts INTEGER, stalls INTEGER);
    CREATE TABLE windlass_deferred (job_id TEXT, chunk INTEGER, item_key TEXT, state TEXT,
        attempts INTEGER, conflicts INTEGER, error TEXT, record TEXT);
    CREATE TABLE windlass_emitted (job_id TEXT, chunk INTEGER, item_key TEXT, seq INTEGER,
        fields TEXT);
    CREATE TABLE windlass_stores (store_id TEXT, connection TEXT, generation INTEGER);";
