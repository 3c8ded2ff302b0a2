//! What pages of the book name is there: each test of `docs/faults.md`, of
//! `docs/commands.md`, of `docs/screen.md` and of `docs/components-shown.md`; those of
//! the first in the crate that it says, too.

use std::collections::{BTreeSet, HashMap, HashSet};
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

/// Names of tests in sources below a folder.
fn tests(folder: &Path) -> HashSet<String> {
    let mut found = HashSet::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tests(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let mut is_test = false;
            for line in text.lines().map(str::trim_start) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let line = line.trim_start_matches("async ");
                if let Some(rest) = line.strip_prefix("fn ")
                    && std::mem::take(&mut is_test)
                {
                    found.extend(rest.split('(').next().map(str::to_owned));
                }
            }
        }
    }
    found
}

/// Where the tests lie that a word of the page of faults stands for.
fn tests_of(word: &str) -> Option<PathBuf> {
    let crates = root().join("crates");
    let folder = match word {
        "" => return None,
        "it" => crates.join("crabtalk/tests/it"),
        name => crates.join(format!("crabtalk-{name}")),
    };
    folder.is_dir().then_some(folder)
}

#[test]
fn every_fault_is_shown_by_tests_of_the_crate_that_the_page_says() {
    let page = fs::read_to_string(root().join("docs/faults.md")).expect("the page");
    let mut known: HashMap<PathBuf, HashSet<String>> = HashMap::new();
    let (mut looked, mut missing) = (0, Vec::new());
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let row = row.trim_end_matches('|');
        let shown_by = row.rsplit('|').next().unwrap_or_default();
        let mut folder = None;
        for (at, part) in shown_by.split('`').enumerate() {
            if at % 2 == 0 {
                let words = part.split(|c: char| !c.is_ascii_lowercase());
                folder = words.filter_map(tests_of).next_back().or(folder);
            } else if !part.contains(' ') {
                looked += 1;
                let folder = folder.clone().expect("a crate before its tests");
                let tests = known
                    .entry(folder.clone())
                    .or_insert_with(|| tests(&folder));
                if !tests.contains(part) {
                    missing.push(format!("{part} in {}", folder.display()));
                }
            }
        }
    }
    assert!(looked > 100, "{looked}");
    assert!(missing.is_empty(), "{missing:#?}");
}
