//! Suggests names for a mistyped one.

use windlass_core::config::{names, similar};
use windlass_core::problem::Code;
use windlass_core::{Column, Problem};

/// The problem of a missing table, with the closest names that exist.
pub(crate) fn missing_table(name: &str, existing: Vec<String>) -> Problem {
    let close = similar(name, &existing);
    let mut detail = format!("there is no table `{name}`");
    if !close.is_empty() {
        detail.push_str(&format!("; did you mean {}?", names(&close)));
    }
    Problem::field(Code::Source, "source.table", detail)
}

/// The problem of a query with two columns of the same name.
pub(crate) fn duplicate_column(name: &str, columns: &[Column]) -> Problem {
    let known = names(columns.iter().map(|column| &column.name));
    let detail = format!("has two columns `{name}`; rename one. Its columns are {known}");
    Problem::field(Code::Source, "source.query", detail)
}

/// Sorts the names and removes Windlass's own tables.
pub(crate) fn user_tables(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| !name.starts_with("windlass_"));
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_close_names() {
        let existing =
            ["visits", "visit_notes", "patients", "windlass_deferred"].map(str::to_owned);
        let problem = missing_table("public.vists", existing.to_vec());
        assert_eq!(problem.detail, "there is no table `public.vists`; did you mean `visits`?");
        assert_eq!(missing_table("zzz", existing.to_vec()).detail, "there is no table `zzz`");
    }
}
