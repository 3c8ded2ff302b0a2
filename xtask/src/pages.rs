//! What pages of the book name is there: each test of `docs/faults.md`, of
//! `docs/commands.md`, of `docs/screen.md` and of `docs/components-shown.md`.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A test's name has more words than that of an option or a variable.
const WORDS: usize = 4;

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace").into()
}

/// Names of functions in sources below a folder.
fn functions(folder: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let names = text.lines().filter_map(|line| {
                let name = line.trim_start().trim_start_matches("async ");
                Some(name.strip_prefix("fn ")?.split('(').next()?.to_owned())
            });
            found.extend(names);
        }
    }
}

/// The tests that a page names, which are more than so many.
fn named(page: &str, most: usize) -> BTreeSet<String> {
    let page = fs::read_to_string(root().join(page)).expect("the page");
    // What stands between two backticks.
    let quoted = page
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_test = |name: &&str| {
        let lower = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
        name.chars().all(lower) && name.split('_').count() >= WORDS
    };
    let named: BTreeSet<String> = quoted.filter(is_test).map(str::to_owned).collect();
    assert!(named.len() > most, "{}", named.len());
    named
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let mut found = HashSet::new();
    functions(&root().join("crates"), &mut found);
    functions(&root().join("xtask"), &mut found);
    for (page, most) in [
        ("docs/faults.md", 70),
        ("docs/commands.md", 40),
        ("docs/screen.md", 20),
        ("docs/components-shown.md", 60),
    ] {
        let missing: Vec<_> = named(page, most)
            .into_iter()
            .filter(|name| !found.contains(name))
            .collect();
        assert!(missing.is_empty(), "{page}: {missing:?}");
    }
}
