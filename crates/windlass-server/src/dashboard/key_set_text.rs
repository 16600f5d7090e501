//! Describes the key set of a chunk in words.

use super::format::{count, number};
use windlass_core::{BlockRange, Key, KeyRange, KeySet, Keys, Value};

/// The maximum number of keys that are listed.
const MAX_KEYS: usize = 10;

/// Describes the records of a chunk: `id from 41 to 50`. Without key columns in the definition, the key is
/// called `key`.
pub(super) fn describe(key_set: &KeySet, columns: &[String]) -> String {
    let name = match columns {
        [] => "key".to_owned(),
        columns => columns.join(", "),
    };
    let keys = match &key_set.keys {
        Keys::Range(KeyRange::ALL) if let Some(blocks) = key_set.blocks => describe_blocks(blocks),
        Keys::Range(range) => describe_range(&name, range),
        Keys::List(keys) => describe_list(&name, keys),
    };
    match &key_set.within {
        Some(within) => format!("{} {}: {keys}", within.filter, within.value),
        None => keys,
    }
}

fn describe_blocks(BlockRange { from, before }: BlockRange) -> String {
    match before {
        Some(before) => format!("blocks {from} to {}", before.saturating_sub(1)),
        None => format!("blocks from {from}"),
    }
}

fn describe_range(name: &str, range: &KeyRange) -> String {
    match (&range.after, &range.upto) {
        (None, None) => "all records".to_owned(),
        (None, Some(upto)) => format!("{name} up to {}", key_text(upto)),
        (Some(after), None) => format!("{name} after {}", key_text(after)),
        (Some(after), Some(upto)) => match (after.0.as_slice(), upto.0.as_slice()) {
            ([Value::Int(after)], [Value::Int(upto)]) if after < upto => {
                format!("{name} from {} to {upto}", after + 1)
            }
            _ => format!("{name} after {}, up to {}", key_text(after), key_text(upto)),
        },
    }
}

fn describe_list(name: &str, keys: &[Key]) -> String {
    let named: Vec<String> = keys.iter().take(MAX_KEYS).map(key_text).collect();
    let named = named.join(if keys.iter().any(|key| key.0.len() > 1) { "; " } else { ", " });
    match keys.len() - keys.len().min(MAX_KEYS) {
        0 => format!("{name} {named}"),
        more => {
            let all = count(keys.len() as i64, "record", "records");
            format!("{all} by {name}: {named} and {} more", number(more as i64))
        }
    }
}

/// A key as text. Quotes make empty values and spaces visible.
fn key_text(key: &Key) -> String {
    let value = |value: &Value| match value {
        Value::Text(text) if text.trim() != text || text.is_empty() => format!("‘{text}’"),
        other => other.to_string(),
    };
    key.0.iter().map(value).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::FilterValue;

    fn key(values: &[&str]) -> Key {
        let value = |text: &&str| text.parse().map_or_else(|_| Value::from(*text), Value::Int);
        Key(values.iter().map(value).collect())
    }

    #[test]
    fn every_kind_of_key_set_is_described() {
        let id = ["id".to_owned()];
        let range = |after: &[&str], upto: &[&str]| {
            let bound = |values: &[&str]| (!values.is_empty()).then(|| key(values));
            KeySet::range(bound(after), bound(upto))
        };
        assert_eq!(describe(&range(&["40"], &["50"]), &id), "id from 41 to 50");
        assert_eq!(describe(&range(&["a"], &["b"]), &id), "id after a, up to b");
        assert_eq!(describe(&range(&[], &["50"]), &id), "id up to 50");
        assert_eq!(describe(&range(&["50"], &[]), &[]), "key after 50");
        assert_eq!(describe(&range(&[], &[]), &id), "all records");
        let both = ["county".to_owned(), "id".to_owned()];
        let text = describe(&range(&["Kent", "1"], &["Kent", "9"]), &both);
        assert_eq!(text, "county, id after Kent, 1, up to Kent, 9");
        assert_eq!(describe(&KeySet::blocks(0, Some(1500)), &id), "blocks 0 to 1499");
        assert_eq!(describe(&KeySet::blocks(1500, None), &id), "blocks from 1500");
        let of_kent = KeySet {
            within: Some(FilterValue { filter: "counties".to_owned(), value: "Kent".into() }),
            ..range(&["40"], &["50"])
        };
        assert_eq!(describe(&of_kent, &id), "counties Kent: id from 41 to 50");
        let keys = |count: usize| {
            KeySet::keys((1..=count).map(|n| Key(vec![Value::Int(n as i64)])).collect())
        };
        assert_eq!(describe(&keys(3), &id), "id 1, 2, 3");
        let many = "1,200 records by id: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1,190 more";
        assert_eq!(describe(&keys(1200), &id), many);
        assert_eq!(describe(&KeySet::keys(vec![key(&[""])]), &id), "id ‘’");
    }
}
