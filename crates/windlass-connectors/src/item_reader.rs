//! Collects rows of [`statement::select`] as items, up to a number of bytes.

use crate::guard;
use crate::key_check::{check_read, copy_column};
use crate::sql::Dialect;
use crate::statement::{self, ColumnPositions};
use crate::{Batch, Item, Result, Scope};
use std::ops::ControlFlow;
use windlass_core::{Columns, Key, Record, Value};

/// Items that are being read.
pub(crate) struct ItemReader<'a> {
    scope: &'a Scope,
    columns: Columns,
    positions: ColumnPositions,
    /// Whether each row has a guard after its columns.
    guarded: bool,
    /// Whether each row ends with its number among the rows of its key.
    numbered: bool,
    bytes_left: usize,
    items: Vec<Item>,
    /// Whether no row was left out because of the byte limit.
    complete: bool,
}

impl<'a> ItemReader<'a> {
    pub(crate) fn new(dialect: Dialect, scope: &'a Scope, bytes: usize) -> ItemReader<'a> {
        ItemReader {
            scope,
            columns: statement::columns_of(scope),
            positions: ColumnPositions::of(scope),
            guarded: guard::expression(dialect, scope, None).is_some(),
            numbered: copy_column(dialect, scope).is_some(),
            bytes_left: bytes,
            items: Vec::new(),
            complete: true,
        }
    }

    /// The position of the row's guard, if the rows have one.
    pub(crate) fn guard_position(&self) -> Option<usize> {
        self.guarded.then_some(self.columns.len())
    }

    /// The position of the row's number among the rows of its key, if the rows have one.
    pub(crate) fn copy_position(&self) -> Option<usize> {
        self.numbered.then_some(self.columns.len() + usize::from(self.guarded))
    }

    /// The positions of the key columns.
    pub(crate) fn key_positions(&self) -> impl Iterator<Item = usize> {
        self.positions.key_positions()
    }

    /// The key of a record with these values.
    pub(crate) fn key(&self, values: &[Value]) -> Key {
        self.positions.key(values)
    }

    /// Adds a row. Breaks when the byte limit is reached.
    pub(crate) fn push(
        &mut self,
        values: Vec<Value>,
        guard: Value,
        copy: i64,
    ) -> Result<ControlFlow<()>> {
        let key = self.positions.key(&values);
        // Checks the row after the last one too: if it has the same key, no batch would contain it.
        check_read(self.scope, self.items.last().map(|item| &item.key), &key, copy)?;
        if self.bytes_left == 0 {
            self.complete = false;
            return Ok(ControlFlow::Break(()));
        }
        let record = Record::new(self.columns.clone(), values);
        self.bytes_left = self.bytes_left.saturating_sub(record.size());
        self.items.push(Item { key, guard, record });
        Ok(ControlFlow::Continue(()))
    }

    /// The items.
    pub(crate) fn into_items(self) -> Vec<Item> {
        self.items
    }

    /// The items of a statement with a limit of `limit + 1` rows.
    pub(crate) fn into_batch(self, limit: u32) -> Batch {
        Batch::new(self.items, self.complete, limit)
    }
}
