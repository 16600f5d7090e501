//! Suggests names for a mistyped one.

use windlass_core::config::names;
use windlass_core::problem::Code;
use windlass_core::{Column, Problem};

/// The problem of a missing table, with the closest names that exist.
pub(crate) fn missing_table(name: &str, existing: Vec<String>) -> Problem {
    let close = closest(name, existing);
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

fn closest(name: &str, existing: Vec<String>) -> Vec<String> {
    let fold = |text: &str| text.rsplit('.').next().unwrap_or(text).to_lowercase();
    let wanted = fold(name);
    let mut ranked: Vec<(usize, String)> =
        existing.into_iter().map(|name| (distance(&wanted, &fold(&name)), name)).collect();
    ranked.retain(|(distance, _)| *distance <= 1 + wanted.len() / 3);
    ranked.sort();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (n, letter) in left.chars().enumerate() {
        let mut line = vec![n + 1];
        for (m, candidate) in right.iter().enumerate() {
            let replaced = above[m] + usize::from(letter != *candidate);
            line.push(replaced.min(above[m + 1] + 1).min(line[m] + 1));
        }
        above = line;
    }
    above[right.len()]
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
