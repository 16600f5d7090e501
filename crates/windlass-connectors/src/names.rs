//! Suggestions for mistyped table names.

use windlass_core::Problem;
use windlass_core::config::{names, similar};
use windlass_core::problem::Code;

/// The problem of a missing table, with similar names that exist.
pub(crate) fn missing_table(name: &str, there: Vec<String>) -> Problem {
    let close = similar(name, &there);
    let mut detail = format!("there is no table `{name}`");
    if !close.is_empty() {
        detail.push_str(&format!("; did you mean {}?", names(&close)));
    }
    Problem::field(Code::Source, "source.table", detail)
}

/// The names in order, without the tables that are Windlass's own.
pub(crate) fn users_own(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| !name.starts_with("windlass_"));
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposes_what_is_close_and_nothing_else() {
        let there = ["visits", "visit_notes", "patients", "windlass_deferred"].map(str::to_owned);
        let problem = missing_table("public.vists", there.to_vec());
        assert_eq!(problem.detail, "there is no table `public.vists`; did you mean `visits`?");
        assert_eq!(missing_table("zzz", there.to_vec()).detail, "there is no table `zzz`");
    }
}
