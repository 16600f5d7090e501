//! The names that a mistyped one may have meant.

use windlass_core::Problem;
use windlass_core::config::names;
use windlass_core::problem::Code;

/// The problem of a table that is not there, with the closest names that are.
pub(crate) fn missing_table(name: &str, there: Vec<String>) -> Problem {
    let close = closest(name, there);
    let mut detail = format!("there is no table `{name}`");
    if !close.is_empty() {
        detail.push_str(&format!("; perhaps {} is meant", names(&close)));
    }
    Problem::field(Code::Source, "source.table", detail)
}

/// The names in order, without the tables that are Windlass's own.
pub(crate) fn users_own(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| !name.starts_with("windlass_"));
    names.sort();
    names
}

fn closest(name: &str, there: Vec<String>) -> Vec<String> {
    let fold = |text: &str| text.rsplit('.').next().unwrap_or(text).to_lowercase();
    let wanted = fold(name);
    let mut ranked: Vec<(usize, String)> =
        there.into_iter().map(|there| (distance(&wanted, &fold(&there)), there)).collect();
    ranked.retain(|(distance, _)| *distance <= 1 + wanted.len() / 3);
    ranked.sort();
    ranked.into_iter().take(3).map(|(_, there)| there).collect()
}

/// How many letters must be added, removed or replaced to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (n, letter) in one.chars().enumerate() {
        let mut line = vec![n + 1];
        for (m, candidate) in other.iter().enumerate() {
            let replaced = above[m] + usize::from(letter != *candidate);
            line.push(replaced.min(above[m + 1] + 1).min(line[m] + 1));
        }
        above = line;
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposes_what_is_close_and_nothing_else() {
        let there = ["visits", "visit_notes", "patients", "windlass_deferred"].map(str::to_owned);
        let problem = missing_table("public.vists", there.to_vec());
        assert_eq!(problem.detail, "there is no table `public.vists`; perhaps `visits` is meant");
        assert_eq!(missing_table("zzz", there.to_vec()).detail, "there is no table `zzz`");
    }
}
