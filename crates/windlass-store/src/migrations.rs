//! The migrations of the schema, and which of them a store does not have yet.

use crate::{Result, StoreError};

/// One file of `migrations/`.
#[derive(Debug)]
pub(crate) struct Migration {
    pub(crate) number: i64,
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// The migrations of one backend, in order.
macro_rules! migrations {
    ($backend:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"), "/migrations/", $backend, "/", $name, ".sql"
        )))),+]
    };
}

pub(crate) use migrations;

/// The migrations after the last applied one. A schema that a newer version has migrated is refused,
/// since this version does not know it.
pub(crate) fn pending(
    all: &'static [(&'static str, &'static str)],
    applied: i64,
) -> Result<impl Iterator<Item = Migration>> {
    let known = all.len() as i64;
    if applied > known {
        return Err(StoreError::Unreadable(format!(
            "its schema has {applied} migrations and this version knows {known}; \
             use the version that migrated it, or a newer one"
        )));
    }
    let numbered = (1..).zip(all).map(|(number, (name, sql))| Migration { number, name, sql });
    Ok(numbered.filter(move |migration| migration.number > applied))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[(&str, &str)] = &[("0001_a", ""), ("0002_b", "")];

    #[test]
    fn only_new_migrations_are_pending_and_a_newer_schema_is_refused() {
        let names = |applied| pending(ALL, applied).unwrap().map(|m| m.name).collect::<Vec<_>>();
        assert_eq!(names(0), ["0001_a", "0002_b"]);
        assert_eq!(names(1), ["0002_b"]);
        assert!(names(2).is_empty());
        assert!(pending(ALL, 3).err().unwrap().to_string().contains("newer"));
    }
}
