//! Suggests names for a mistyped one.

use windlass_core::Problem;
use windlass_core::config::{names, similar};
use windlass_core::problem::Code;

/// The problem of a missing table, with the closest names that exist.
pub(crate) fn missing_table(name: &str, existing: Vec<String>) -> Problem {
    let close = similar(name, &existing);
    let mut detail = format!("there is no table `{name}`");
    if !close.is_empty() {
        detail.push_str(&format!("; did you mean {}?", names(&close)));
    }
    Problem::field(Code::Source, "source.table", detail)
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
