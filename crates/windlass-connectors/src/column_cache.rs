//! The columns of tables that items insert into. They decide how values are written, and rarely change.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_core::Column;

/// Columns by the name of their table.
#[derive(Default)]
pub(crate) struct ColumnCache {
    tables: Mutex<HashMap<String, Arc<Vec<Column>>>>,
}

impl ColumnCache {
    /// The columns of a table. `None` when one of these columns is unknown: it may have been added since.
    pub(crate) fn get(&self, table: &str, names: &[&str]) -> Option<Arc<Vec<Column>>> {
        let known = self.tables.lock().get(table).cloned()?;
        let is_known = |name: &&str| known.iter().any(|column| column.name == **name);
        names.iter().all(is_known).then_some(known)
    }

    pub(crate) fn insert(&self, table: &str, columns: Vec<Column>) -> Arc<Vec<Column>> {
        let columns = Arc::new(columns);
        self.tables.lock().insert(table.to_owned(), columns.clone());
        columns
    }
}
