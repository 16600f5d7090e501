//! Expressions of DynamoDB, with names and values bound.

use super::value::{same, to_typed};
use crate::{Result, Scope};
use std::collections::HashMap;
use windlass_core::problem::Code;
use windlass_core::{FilterValue, Key, Problem, Value};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

/// The attributes of an item.
pub(super) type Attributes = HashMap<String, AttributeValue>;

/// The names and values that the expressions of one request refer to.
#[derive(Debug, Default)]
pub(super) struct Bound {
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Bound {
    /// A placeholder for an attribute, whose own name may not be allowed in an expression.
    pub(super) fn name(&mut self, attribute: &str) -> String {
        if let Some((name, _)) = self.names.iter().find(|(_, known)| *known == attribute) {
            return name.clone();
        }
        let name = format!("#n{}", self.names.len());
        self.names.insert(name.clone(), attribute.to_owned());
        name
    }

    /// A placeholder for a value.
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

    /// The conjunction of these conditions. `None` when there are none.
    pub(super) fn all(&mut self, conditions: &[Condition]) -> Option<String> {
        let texts: Vec<String> = conditions.iter().map(|condition| condition.text(self)).collect();
        (!texts.is_empty()).then(|| texts.join(" AND "))
    }

    /// The names. `None` when there are none, since DynamoDB refuses an empty map.
    pub(super) fn names(&self) -> Option<HashMap<String, String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }

    /// The values. `None` when there are none.
    pub(super) fn values(&self) -> Option<Attributes> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }
}

/// Requires that an attribute has one of these values.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) column: String,
    values: Vec<AttributeValue>,
}

/// The most values that DynamoDB accepts in one `IN`.
const MAX_IN_VALUES: usize = 100;
/// The most values of one condition.
const MAX_VALUES: usize = 300;

impl Condition {
    /// What a record of the job must match: `source.match`, the filters and the claims.
    pub(super) fn of(scope: &Scope, within: Option<&FilterValue>) -> Result<Vec<Condition>> {
        let condition = |(column, values, _): (&str, Vec<Value>, bool)| {
            let values: Vec<AttributeValue> =
                values.iter().map(|value| typed(scope, column, value)).collect::<Result<_>>()?;
            if values.len() > MAX_VALUES {
                let found = values.len();
                let detail = format!(
                    "filters `{column}` by {found} values, but a DynamoDB condition takes at most \
                     {MAX_VALUES}; split the request"
                );
                return Err(Problem::field(Code::Request, "filter", detail).into());
            }
            Ok(Condition { column: column.to_owned(), values })
        };
        scope.conditions(within).into_iter().map(condition).collect()
    }

    /// What a record must still match when it is written: `source.match`.
    pub(super) fn on_write(scope: &Scope) -> Result<Vec<Condition>> {
        let condition = |(column, value): (&str, Value)| {
            let values = vec![typed(scope, column, &value)?];
            Ok(Condition { column: column.to_owned(), values })
        };
        scope.matches().map(condition).collect()
    }

    /// Whether a record matches.
    pub(super) fn matches(&self, item: &Attributes) -> bool {
        item.get(&self.column)
            .is_some_and(|found| self.values.iter().any(|value| same(found, value)))
    }

    fn text(&self, bound: &mut Bound) -> String {
        let name = bound.name(&self.column);
        // Without values, no record matches.
        if self.values.is_empty() {
            return format!("(attribute_exists({name}) AND attribute_not_exists({name}))");
        }
        let lists = self.values.chunks(MAX_IN_VALUES).map(|values| {
            let values: Vec<String> =
                values.iter().map(|value| bound.value(value.clone())).collect();
            format!("{name} IN ({})", values.join(", "))
        });
        let lists: Vec<String> = lists.collect();
        format!("({})", lists.join(" OR "))
    }
}

/// A value of a column, in its declared type if it has one.
fn typed(scope: &Scope, column: &str, value: &Value) -> Result<AttributeValue> {
    to_typed(scope.table.column(column).map(|column| column.kind), value)
}

/// Attributes for these columns: the key of a record, or the key after which a page begins.
pub(super) fn start_key(scope: &Scope, columns: &[String], key: &Key) -> Result<Attributes> {
    let attribute =
        |(column, value): (&String, &Value)| Ok((column.clone(), typed(scope, column, value)?));
    columns.iter().zip(&key.0).map(attribute).collect()
}

/// A record's key.
pub(super) fn key_of(scope: &Scope, key: &Key) -> Result<Attributes> {
    start_key(scope, scope.key(), key)
}
