//! The files of the command line import each other in one direction.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules at the root of the crate, and which of them each one imports,
/// tests apart.
fn imports(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(source).unwrap().with_extension("");
            let mut parts = inside.iter().map(|part| part.to_str().unwrap().to_owned());
            let module = parts.next().unwrap();
            if parts.any(|part| part == "tests") || ["lib", "testing"].contains(&&*module) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let others = found.entry(module.clone()).or_default();
            others.extend(named(text).into_iter().filter(|other| *other != module));
        }
    }
    let modules: BTreeSet<String> = found.keys().cloned().collect();
    for others in found.values_mut() {
        others.retain(|other| modules.contains(other));
    }
    found
}

/// The modules that a text names behind `crate::`, in braces too.
fn named(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, start) in text.match_indices("crate::") {
        let rest = &text[at + start.len()..];
        let list = match rest.strip_prefix('{') {
            Some(inside) => inside.split('}').next().unwrap().split(',').collect(),
            None => vec![rest],
        };
        for word in list {
            let is_of_name = |c: &char| c.is_alphanumeric() || *c == '_';
            names.insert(word.trim().chars().take_while(is_of_name).collect());
        }
    }
    names
}

#[test]
fn no_file_imports_one_that_imports_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut imports = imports(&source);
    assert!(imports.len() > 10 && imports["commands"].contains("context"));
    // What imports nothing that is left cannot be in a circle.
    loop {
        let free: Vec<String> = imports
            .iter()
            .filter(|(_, others)| others.is_empty())
            .map(|(module, _)| module.clone())
            .collect();
        if free.is_empty() {
            break;
        }
        for module in free {
            imports.remove(&module);
            for others in imports.values_mut() {
                others.remove(&module);
            }
        }
    }
    assert!(imports.is_empty(), "these import each other: {imports:?}");
}
