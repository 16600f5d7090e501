//! The functions, statements and texts that the model names are in the source tree.

use std::fs;
use std::path::Path;

use windlass_model::Clause;

/// A file below `crates/`. Cargo runs a test in the folder of its package, wherever that was built.
fn source(path: &str) -> String {
    let file = Path::new("..").join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What the actions of a source file of the model stand for: its texts that begin with the name of a crate.
fn named_in(file: &str) -> Vec<String> {
    let text = source(&format!("windlass-model/src/{file}"));
    let quoted = text.split('"').skip(1).step_by(2);
    quoted.filter(|text| text.starts_with("windlass-")).map(str::to_owned).collect()
}

/// Why a function or statement is gone.
fn missing(name: &str) -> Option<String> {
    let Some((path, function)) = name.split_once("::") else {
        return source(name).is_empty().then(|| format!("{name} is empty"));
    };
    let text = source(path);
    let declared = [format!("fn {function}("), format!("fn {function}<")];
    let found = declared.iter().any(|declaration| text.contains(declaration));
    (!found).then(|| format!("{path} has no function `{function}`"))
}

#[test]
fn the_functions_that_actions_stand_for_exist() {
    let names = [named_in("action.rs"), named_in("generations.rs")].concat();
    assert!(names.len() > 50, "{names:?}");
    let missing: Vec<_> = names.iter().filter_map(|name| missing(name)).collect();
    assert!(missing.is_empty(), "adapt the model to the code: {missing:#?}");
}

#[test]
fn the_texts_that_clauses_consist_of_exist() {
    for clause in Clause::ALL {
        let (path, text) = clause.written_in();
        assert!(source(path).contains(text), "{clause:?}: {path} has no `{text}`");
    }
}
