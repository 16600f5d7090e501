//! How far a chunk has been committed.

use crate::{Key, KeyRange, KeySet, Keys};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Serialize, Serializer};

/// The position in a chunk up to which everything is committed. Stored in the ledger as JSON:
/// `null`, a key, a number of keys, or `"end"`; with exceptions `{"upto": position, "except": [keys]}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cursor {
    /// Nothing is committed yet.
    #[default]
    Start,
    /// Every record of the range up to this key is committed.
    Key(Key),
    /// This many keys of the list are committed.
    Index(u64),
    /// The whole chunk is committed.
    End,
    /// Everything up to this position is committed, except the items with these keys. They failed, and
    /// their dead letters could not be written.
    Except(Box<Cursor>, Vec<Key>),
}

impl Cursor {
    /// The position without its exceptions.
    pub fn position(&self) -> &Cursor {
        match self {
            Cursor::Except(position, _) => position.position(),
            position => position,
        }
    }

    /// The keys of items that are not committed although the cursor has passed them.
    pub fn exceptions(&self) -> &[Key] {
        match self {
            Cursor::Except(_, keys) => keys,
            _ => &[],
        }
    }

    /// This position with these exceptions.
    pub fn except(&self, keys: Vec<Key>) -> Cursor {
        let position = self.position().clone();
        if keys.is_empty() { position } else { Cursor::Except(Box::new(position), keys) }
    }

    /// The keys behind the position that are not committed yet; `None` at the end.
    pub fn remaining(&self, key_set: &KeySet) -> Option<KeySet> {
        let keys = match (self.position(), &key_set.keys) {
            (Cursor::End, _) => return None,
            (Cursor::Key(key), Keys::Range(range)) => {
                Keys::Range(KeyRange { after: Some(key.clone()), upto: range.upto.clone() })
            }
            (Cursor::Index(done), Keys::List(keys)) => {
                Keys::List(keys.get(*done as usize..).unwrap_or_default().to_vec())
            }
            (_, keys) => keys.clone(),
        };
        let KeySet { within, blocks, snapshot, .. } = key_set.clone();
        Some(KeySet { within, blocks, snapshot, keys })
    }

    /// Whether everything in these keys is committed. A chunk that was split ends at a key.
    pub fn is_at_end_of(&self, key_set: &KeySet) -> bool {
        match (self, &key_set.keys) {
            (Cursor::End, _) => true,
            (Cursor::Key(key), Keys::Range(range)) => range.upto.as_ref() == Some(key),
            _ => false,
        }
    }

    /// The text stored in the ledger.
    pub fn to_text(&self) -> String {
        match self {
            Cursor::Start => "null".to_owned(),
            Cursor::Key(key) => key.to_text(),
            Cursor::Index(done) => done.to_string(),
            Cursor::End => "\"end\"".to_owned(),
            // Plain values can always be written.
            Cursor::Except(..) => serde_json::to_string(self).unwrap_or_default(),
        }
    }

    /// Reads what [`Cursor::to_text`] wrote.
    pub fn from_text(text: &str) -> Result<Cursor, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cursor::Start => serializer.serialize_unit(),
            Cursor::Key(key) => key.serialize(serializer),
            Cursor::Index(done) => serializer.serialize_u64(*done),
            Cursor::End => serializer.serialize_str("end"),
            Cursor::Except(upto, except) => Exceptions { upto, except }.serialize(serializer),
        }
    }
}

/// The JSON of a cursor with exceptions.
#[derive(Serialize)]
struct Exceptions<'a> {
    upto: &'a Cursor,
    except: &'a [Key],
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde_json::Value as Json;
        match Json::deserialize(deserializer)? {
            Json::Null => Ok(Cursor::Start),
            Json::String(text) if text == "end" => Ok(Cursor::End),
            Json::Number(done) => done
                .as_u64()
                .map(Cursor::Index)
                .ok_or_else(|| D::Error::custom(format!("{done} is not a number of keys"))),
            key @ Json::Array(_) => Ok(Cursor::Key(Key::from_id(key))),
            Json::Object(mut fields) => {
                let mut field = |name: &str| fields.remove(name).unwrap_or_default();
                let upto = Cursor::deserialize(field("upto")).map_err(D::Error::custom)?;
                let Json::Array(except) = field("except") else {
                    return Err(D::Error::custom("a cursor with exceptions needs `except`"));
                };
                Ok(upto.except(except.into_iter().map(Key::from_id).collect()))
            }
            other => Err(D::Error::custom(format!("{other} is not a cursor"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::value::tests::any_value;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cursors_round_trip(values in proptest::collection::vec(any_value(), 1..3), n in 0u64..1 << 50) {
            let plain = [Cursor::Start, Cursor::End, Cursor::Index(n), Cursor::Key(Key(values.clone()))];
            let except = plain.clone().map(|cursor| cursor.except(vec![Key(values.clone()), Key(vec![n.to_string().into()])]));
            for cursor in plain.into_iter().chain(except) {
                prop_assert_eq!(&Cursor::from_text(&cursor.to_text()).unwrap(), &cursor);
                prop_assert_eq!(serde_json::to_string(&cursor).unwrap(), cursor.to_text());
            }
        }
    }

    #[test]
    fn the_remaining_keys_begin_behind_the_cursor() {
        let key = |n: i64| Key(vec![Value::Int(n)]);
        let range = KeySet::range(Some(key(0)), Some(key(9)));
        assert_eq!(Cursor::Start.remaining(&range), Some(range.clone()));
        assert_eq!(
            Cursor::Key(key(4)).remaining(&range),
            Some(KeySet::range(Some(key(4)), Some(key(9))))
        );
        assert_eq!(Cursor::End.remaining(&range), None);
        assert_eq!(Cursor::End.except(vec![key(1)]).remaining(&range), None);
        assert!(Cursor::Key(key(9)).is_at_end_of(&range) && Cursor::End.is_at_end_of(&range));
        assert!(!Cursor::Key(key(8)).is_at_end_of(&range) && !Cursor::Start.is_at_end_of(&range));
        let list = KeySet::keys(vec![key(1), key(2), key(3)]);
        assert_eq!(Cursor::Index(2).remaining(&list), Some(KeySet::keys(vec![key(3)])));
    }
}
