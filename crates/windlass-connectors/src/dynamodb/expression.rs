//! Expressions: conditions and assignments as DynamoDB writes them, with names and values bound.

use super::value::{same, to_typed};
use crate::{Result, Scope};
use std::collections::HashMap;
use windlass_core::problem::Code;
use windlass_core::{FilterValue, Key, Problem, Value};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

/// An item as DynamoDB gives it.
pub(super) type Attributes = HashMap<String, AttributeValue>;

/// What the texts of one request refer to.
#[derive(Debug, Default)]
pub(super) struct Bound {
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Bound {
    /// A name for an attribute, whatever letters it has.
    pub(super) fn name(&mut self, attribute: &str) -> String {
        if let Some((name, _)) = self.names.iter().find(|(_, known)| *known == attribute) {
            return name.clone();
        }
        let name = format!("#n{}", self.names.len());
        self.names.insert(name.clone(), attribute.to_owned());
        name
    }

    /// A name for a value.
    pub(super) fn value(&mut self, value: AttributeValue) -> String {
        let name = format!(":v{}", self.values.len());
        self.values.insert(name.clone(), value);
        name
    }

    /// A list of attributes.
    pub(super) fn list(&mut self, attributes: &[String]) -> String {
        let names: Vec<String> = attributes.iter().map(|attribute| self.name(attribute)).collect();
        names.join(", ")
    }

    /// All of these conditions; none where there are none.
    pub(super) fn all(&mut self, conditions: &[Condition]) -> Option<String> {
        let texts: Vec<String> = conditions.iter().map(|condition| condition.text(self)).collect();
        (!texts.is_empty()).then(|| texts.join(" AND "))
    }

    /// The names; none where there are none, since DynamoDB refuses an empty list.
    pub(super) fn names(&self) -> Option<HashMap<String, String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }

    /// The values; none where there are none.
    pub(super) fn values(&self) -> Option<Attributes> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }
}

/// That an attribute has one of some values.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) column: String,
    values: Vec<AttributeValue>,
}

/// Values of one IN, and of all that one condition may have.
const IN: usize = 100;
const MOST: usize = 300;

impl Condition {
    /// Everything that a record of a job must meet: filters and claims.
    pub(super) fn of(scope: &Scope, within: Option<&FilterValue>) -> Result<Vec<Condition>> {
        let condition = |(column, values, _): (&str, Vec<Value>, bool)| {
            let kind = scope.table.column(column).map(|column| column.kind);
            let values: Vec<AttributeValue> =
                values.iter().map(|value| to_typed(kind, value)).collect::<Result<_>>()?;
            if values.len() > MOST {
                let found = values.len();
                let detail = format!(
                    "`{column}` is to have one of {found} values, and a condition of DynamoDB takes \
                     {MOST}; make several requests of it"
                );
                return Err(Problem::field(Code::Request, "filter", detail).into());
            }
            Ok(Condition { column: column.to_owned(), values })
        };
        scope.conditions(within).into_iter().map(condition).collect()
    }

    /// Whether a record meets it.
    pub(super) fn holds(&self, item: &Attributes) -> bool {
        item.get(&self.column)
            .is_some_and(|found| self.values.iter().any(|value| same(found, value)))
    }

    fn text(&self, bound: &mut Bound) -> String {
        let name = bound.name(&self.column);
        // No value: nothing is meant.
        if self.values.is_empty() {
            return format!("(attribute_exists({name}) AND attribute_not_exists({name}))");
        }
        let lists = self.values.chunks(IN).map(|values| {
            let values: Vec<String> =
                values.iter().map(|value| bound.value(value.clone())).collect();
            format!("{name} IN ({})", values.join(", "))
        });
        let lists: Vec<String> = lists.collect();
        format!("({})", lists.join(" OR "))
    }
}

/// Columns and their values as DynamoDB names a place: a key, or where a page ended.
pub(super) fn place(scope: &Scope, columns: &[String], key: &Key) -> Result<Attributes> {
    let attribute = |(column, value): (&String, &Value)| {
        let kind = scope.table.column(column).map(|column| column.kind);
        Ok((column.clone(), to_typed(kind, value)?))
    };
    columns.iter().zip(&key.0).map(attribute).collect()
}

/// A record's key.
pub(super) fn key_of(scope: &Scope, key: &Key) -> Result<Attributes> {
    place(scope, scope.key(), key)
}
