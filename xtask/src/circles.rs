//! No circles of imports between the files of a crate.
//!
//! Files beside each other are compared, each with all that lies below it: if one
//! imports the other, in however many steps, the other does not import the one.
//! What a file takes from the one that it belongs to is no import from beside.

use crate::layers::members;
use anyhow::{Context, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by the names that lead to it; the crate's root has none.
type Module = Vec<String>;

/// Whom a module beside others imports, by the folder that they lie in.
type Imports = BTreeMap<Module, BTreeMap<String, BTreeSet<String>>>;

/// Every circle, one line each.
pub(crate) fn problems() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for member in members()? {
        let name = member.name.as_str();
        let folder = member.manifest.with_file_name("src");
        let mut files = BTreeMap::new();
        read(&folder, &Module::new(), &mut files)?;
        ensure!(!files.is_empty(), "{name} has no sources");
        found.extend(circles(&imports(&files)).map(|circle| format!("{name}: {circle}")));
    }
    Ok(found)
}

/// The text of each module but for tests.
fn read(folder: &Path, at: &Module, files: &mut BTreeMap<Module, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if stem == "tests" || stem == "testing" {
            continue;
        }
        let below = || at.iter().cloned().chain([stem.to_string()]).collect();
        if path.is_dir() {
            read(&path, &below(), files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let module = match &*stem {
                "lib" | "main" | "mod" => at.clone(),
                _ => below(),
            };
            files.insert(module, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn imports(files: &BTreeMap<Module, String>) -> Imports {
    let mut found = Imports::new();
    for (module, text) in files {
        let words = words(text);
        for path in paths(&words) {
            let Some(other) = resolved(module, &path, files) else {
                continue;
            };
            let same = module.iter().zip(&other).take_while(|(a, b)| a == b);
            let same = same.count();
            if let (Some(from), Some(to)) = (module.get(same), other.get(same)) {
                let beside = found.entry(module[..same].to_vec()).or_default();
                beside.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    found
}

/// Words and signs of a text, without comments and the tests at its end.
fn words(text: &str) -> Vec<&str> {
    let end = text.find("\n#[cfg(test)]\nmod tests {");
    let lines = text[..end.unwrap_or(text.len())].lines();
    let mut found = Vec::new();
    for line in lines {
        let mut rest = line.split("//").next().unwrap_or_default().trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = match first {
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            let (word, behind) = rest.split_at(length);
            found.push(word);
            rest = behind.trim_start();
        }
    }
    found
}

/// Every path in a text; one in braces is as many as there are names in it.
fn paths<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let begins = words.get(at + 1) == Some(&"::") && (at == 0 || words[at - 1] != "::");
        match begins {
            true => at = path(words, at, Vec::new(), &mut found),
            false => at += 1,
        }
    }
    found
}

/// Reads one path; where it ends.
fn path<'a>(
    words: &[&'a str],
    mut at: usize,
    mut before: Vec<&'a str>,
    found: &mut Vec<Vec<&'a str>>,
) -> usize {
    while let Some(word) = words.get(at) {
        at += 1;
        if *word == "{" {
            while words.get(at).is_some_and(|word| *word != "}") {
                match words[at] {
                    "," => at += 1,
                    _ => at = path(words, at, before.clone(), found),
                }
            }
            return at + 1;
        }
        before.push(word);
        if words.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    found.push(before);
    at
}

/// The module that a path leads into; `None` if it is of another crate.
fn resolved(module: &Module, path: &[&str], files: &BTreeMap<Module, String>) -> Option<Module> {
    let above = path.iter().take_while(|word| **word == "super").count();
    let (mut at, rest): (Module, _) = match *path.first()? {
        "crate" => (Module::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        _ => (
            module[..module.len().checked_sub(above)?].to_vec(),
            &path[above..],
        ),
    };
    for word in rest {
        at.push((*word).to_owned());
        if !files.contains_key(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

/// Circles among modules beside each other.
fn circles(imports: &Imports) -> impl Iterator<Item = String> {
    imports.iter().flat_map(|(folder, beside)| {
        beside.keys().filter_map(move |from| {
            let way = way_back(beside, from)?;
            // Each is told once, by its first name.
            let is_first = way.iter().all(|name| from <= name);
            let folder = folder.join("::");
            is_first.then(|| format!("a circle in `crate::{folder}`: {}", way.join(" -> ")))
        })
    })
}

/// The way from a module back to itself, if there is one.
fn way_back(beside: &BTreeMap<String, BTreeSet<String>>, from: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        for next in beside.get(way.last()?).into_iter().flatten() {
            if next == from {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push(way.iter().cloned().chain([next.clone()]).collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let module = |name: &str| -> Module { name.split("::").map(str::to_owned).collect() };
        let files = files
            .iter()
            .map(|(name, text)| (module(name), (*text).to_owned()))
            .collect();
        circles(&imports(&files)).collect()
    }

    #[test]
    fn no_files_import_each_other_in_a_circle() {
        let problems = problems().unwrap();
        assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    }

    #[test]
    fn a_circle_is_named_and_a_folder_is_one_with_what_is_below() {
        for (files, said) in [
            (
                &[
                    ("a", "use crate::b::X;"),
                    ("b", "use crate::{a::{self, Y}, c};"),
                    ("c", ""),
                ][..],
                "a circle in `crate::`: a -> b",
            ),
            (
                &[("a", "fn f() { super::b::g() }"), ("b", "// crate::a::f")],
                "",
            ),
            // Through what lies below one of them.
            (
                &[
                    ("a", ""),
                    ("a::low", "use crate::b;"),
                    ("b", "use super::a::X;"),
                ],
                "a circle in `crate::`: a -> b",
            ),
            // What belongs to a file takes from it what it likes.
            (
                &[
                    ("a", "low::f()"),
                    ("a::low", "use super::X; use crate::a::Y;"),
                ],
                "",
            ),
            (
                &[
                    ("a::x", "use super::y::T;"),
                    ("a::y", "use super::x::U;"),
                    ("a", ""),
                ],
                "a circle in `crate::a`: x -> y",
            ),
            (
                &[
                    ("a", "use crate::b;"),
                    ("b", "\n#[cfg(test)]\nmod tests { use crate::a; }"),
                ],
                "",
            ),
        ] {
            assert_eq!(found(files).join("\n"), said, "{files:?}");
        }
    }
}
