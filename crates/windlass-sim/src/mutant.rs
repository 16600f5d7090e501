//! A mutant: the protocol without one of its clauses, to show that the simulation needs it.

use crate::focus::Focus;
use crate::mutants::MUTANTS;

/// A text that identifies statements, or a file below `crates/`; a text in them; and what replaces it.
pub(crate) type Change = (&'static str, &'static str, &'static str);

/// A clause of the protocol, and what removes it. The names are those of `windlass-model`, unless the model has no such
/// clause.
pub(crate) struct Mutant {
    pub(crate) clause: &'static str,
    /// What is removed, for people.
    pub(crate) removes: &'static str,
    /// What changes in statements.
    changes: &'static [Change],
    /// A text of the statement after which its transaction is committed, so that the rest may fail alone.
    pub(crate) splits_after: Option<&'static str>,
    /// What changes in the code, in a copy of it (`patch.rs`).
    pub(crate) patches: &'static [Change],
    /// What the faults must concentrate on to find it soon; `None` for any mix.
    pub(crate) focus: Option<Focus>,
    /// A seed that found it. It is tried first; a change of the code may have made it useless.
    pub(crate) seed: u64,
}

impl Mutant {
    /// All mutants, or the one without this clause.
    pub(crate) fn selected(clause: &str) -> anyhow::Result<&'static [Mutant]> {
        if clause.is_empty() {
            return Ok(MUTANTS);
        }
        Ok(std::slice::from_ref(Mutant::named(clause)?))
    }

    /// The mutant without this clause.
    pub(crate) fn named(clause: &str) -> anyhow::Result<&'static Mutant> {
        let known = || MUTANTS.iter().map(|mutant| mutant.clause).collect::<Vec<_>>().join(", ");
        MUTANTS
            .iter()
            .find(|mutant| mutant.clause == clause)
            .ok_or_else(|| anyhow::anyhow!("no mutant is named `{clause}`; there are {}", known()))
    }

    /// The changed statement, if it is one of those that change.
    pub(crate) fn apply(&self, sql: &str) -> Option<String> {
        let mut changed = sql.to_owned();
        for (_, from, to) in self.changes.iter().filter(|(of, ..)| sql.contains(of)) {
            changed = changed.replace(from, to);
        }
        (changed != sql).then_some(changed)
    }

    const fn new(clause: &'static str, removes: &'static str) -> Mutant {
        Mutant {
            clause,
            removes,
            changes: &[],
            splits_after: None,
            patches: &[],
            focus: None,
            seed: 1,
        }
    }

    /// A clause that is a part of statements.
    pub(crate) const fn of_statements(
        clause: &'static str,
        removes: &'static str,
        changes: &'static [Change],
    ) -> Mutant {
        Mutant { changes, ..Mutant::new(clause, removes) }
    }

    /// A clause that makes one transaction of several statements.
    pub(crate) const fn of_transaction(
        clause: &'static str,
        removes: &'static str,
        after: &'static str,
    ) -> Mutant {
        Mutant { splits_after: Some(after), ..Mutant::new(clause, removes) }
    }

    /// A clause that is a part of the code.
    pub(crate) const fn of_code(
        clause: &'static str,
        removes: &'static str,
        patches: &'static [Change],
    ) -> Mutant {
        Mutant { patches, ..Mutant::new(clause, removes) }
    }

    /// The seed that found it, with the focus that the seed draws.
    pub(crate) const fn with_seed(self, seed: u64) -> Mutant {
        Mutant { seed, ..self }
    }

    /// The focus and the seed that found it.
    pub(crate) const fn found_by(self, focus: Focus, seed: u64) -> Mutant {
        Mutant { focus: Some(focus), seed, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

    /// A statement that was rewritten would leave a mutant without effect.
    #[test]
    fn every_mutant_changes_a_statement() {
        let folders = [
            "windlass-store/queries/sqlite",
            "windlass-store/queries/shared",
            "windlass-connectors/sql/sqlite",
        ];
        let files = folders.iter().flat_map(|folder| {
            let files = std::fs::read_dir(format!("{CRATES}/{folder}")).unwrap();
            files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        });
        let files: Vec<String> = files.collect();
        for mutant in MUTANTS {
            for change in mutant.changes {
                if change.0.starts_with("UPDATE") {
                    // Made in code.
                    continue;
                }
                let only = Mutant::of_statements("", "", std::slice::from_ref(change));
                let changed = files.iter().filter(|sql| only.apply(sql).is_some()).count();
                assert!(changed > 0, "{}: no statement contains {:?}", mutant.clause, change.1);
            }
            let splits = |after: &str| files.iter().any(|sql| sql.contains(after));
            assert!(mutant.splits_after.is_none_or(splits), "{}", mutant.clause);
        }
    }

    #[test]
    fn every_patch_changes_one_place_of_the_code() {
        for mutant in MUTANTS {
            for (file, from, _) in mutant.patches {
                let text = std::fs::read_to_string(format!("{CRATES}/{file}")).unwrap();
                assert_eq!(text.matches(from).count(), 1, "{}: {file}: {from:?}", mutant.clause);
            }
        }
    }
}
