//! Names of tools as agents call them: `server__tool`.
//!
//! Invariants: the part before the first separator is the server; the names of a
//! server's tools are distinct; every provider accepts them.

use crate::settings::hex;
use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// Longest name that every provider accepts.
const MAX_NAME: usize = 64;

/// The separator between the names of server and tool.
const SEPARATOR: &str = "__";

/// Digits of the hash in a name that had to be changed.
const DIGITS: usize = 6;

/// Longest server name; the rest is for the tool's name.
pub const MAX_SERVER_NAME: usize = 48;

/// Checks the name of a server.
///
/// # Errors
/// The reason why it is invalid.
pub fn check_server_name(name: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let first = name.bytes().next();
    if !first.is_some_and(|b| b.is_ascii_alphanumeric()) || !name.bytes().all(plain) {
        return Err(
            "a name has letters, digits, `-` and `_`, and begins with a letter or digit".into(),
        );
    }
    if name.len() > MAX_SERVER_NAME {
        return Err(format!(
            "a server's name has at most {MAX_SERVER_NAME} bytes"
        ));
    }
    if name.contains(SEPARATOR) || name.ends_with('_') {
        return Err("`__` separates the names of server and tool: a server's name cannot contain it or end in `_`".into());
    }
    Ok(())
}

/// Sorts by name, ignoring case. Of names that differ only in case, the lower-case one
/// comes first, so that the preferred one does not depend on the input order.
pub(crate) fn small_first<T>(
    all: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> &str,
) -> Vec<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_by(|a, b| {
        let (a, b) = (name(a), name(b));
        let small = |name: &str| name.to_ascii_lowercase();
        small(a).cmp(&small(b)).then_with(|| b.cmp(a))
    });
    all
}

/// The name by which agents call a tool.
pub(crate) fn qualified(server: &str, raw: &str, taken: &HashSet<String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let tool: String = raw
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    let name = format!("{server}{SEPARATOR}{tool}");
    let same = tool == raw && !tool.is_empty();
    if same && name.len() <= MAX_NAME && !taken.contains(&name) {
        return name;
    }
    let mut digits = hex(&Sha256::digest(raw));
    digits.truncate(DIGITS);
    // The name is ASCII here and can be cut anywhere.
    let keep = name.len().min(MAX_NAME - DIGITS - 1);
    format!("{}-{digits}", &name[..keep])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_kept_and_any_other_is_told_apart() {
        let none = HashSet::new();
        assert_eq!(qualified("files", "read_file", &none), "files__read_file");
        let odd = [
            qualified("files", "read.file", &none),
            qualified("files", "read/file", &none),
            qualified("files", "", &none),
            qualified("files", "файл", &none),
            qualified("files", &"long".repeat(40), &none),
            qualified(&"s".repeat(MAX_SERVER_NAME), &"t".repeat(90), &none),
        ];
        let distinct: HashSet<&String> = odd.iter().collect();
        assert_eq!(distinct.len(), odd.len());
        for name in &odd {
            assert!(name.len() <= MAX_NAME && name.is_ascii(), "{name}");
            let (server, tool) = name.split_once(SEPARATOR).expect("both parts");
            assert!(
                !tool.is_empty() && check_server_name(server).is_ok(),
                "{name}"
            );
        }
        let taken = HashSet::from(["files__a".to_owned()]);
        assert_ne!(qualified("files", "a", &taken), "files__a");
    }

    #[test]
    fn a_server_can_be_told_from_its_tools() {
        for name in ["files", "a-b", "a_b", "9x"] {
            assert_eq!(check_server_name(name), Ok(()), "{name}");
        }
        let long = "a".repeat(MAX_SERVER_NAME + 1);
        for name in ["", "a__b", "a_", "_a", "-a", "a b", "é", "a/b", &long] {
            assert!(check_server_name(name).is_err(), "{name}");
        }
    }
}
