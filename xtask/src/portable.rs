//! Whether the client holds together where there is no Unix.
//!
//! Invariants: in the client's crates what is Unix's own is named by the modules of
//! [`OF_UNIX`] alone; with these modules out of the way the client compiles.
//!
//! The second is tried on this machine, in a copy of the sources in which `unix`
//! and `linux` are names of no system. So what the libraries do elsewhere is not
//! tried, and no such client runs here.

use crate::layers;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built for clients: what the program is without the daemon, and the gateway
/// that others are modelled on.
const BUILT: &[&str] = &["crabtalk-cli", "crabtalk-webhook"];

/// The program's own crate, which hosts the daemon where there is Unix.
const PROGRAM: &str = "crabtalk";

/// The modules that are there on Unix alone, with those below them. All but the
/// first three have a neighbour `other.rs` with the same functions.
const OF_UNIX: &[&str] = &[
    "crabtalk/src/host.rs",
    "crabtalk-transport/src/unix.rs",
    "crabtalk-component/src/sockets.rs",
    "crabtalk-cli/src/system/unix.rs",
    "crabtalk-client/src/system/unix.rs",
    "crabtalk-component/src/system/unix.rs",
    "crabtalk-config/src/system/unix.rs",
    "crabtalk-files/src/system/unix.rs",
    "crabtalk-skills/src/system/unix.rs",
];

/// Where it is decided which modules there are.
const DECIDES: &[&str] = &[
    "crabtalk/src/main.rs",
    "crabtalk-transport/src/lib.rs",
    "crabtalk-cli/src/system.rs",
    "crabtalk-client/src/system.rs",
    "crabtalk-component/src/system.rs",
    "crabtalk-config/src/system.rs",
    "crabtalk-files/src/system.rs",
    "crabtalk-skills/src/system.rs",
];

/// By which words what is Unix's own is known.
const WORDS: &[&str] = &[
    "crabtalk_daemon",
    "crabtalk_guardian",
    "libc::",
    "net::Unix",
    "net::unix",
    "nix::",
    "rustix",
    "signal::unix",
    "std::os::",
    "tokio::io::unix",
    "UnixListener",
    "UnixStream",
];

/// The decision itself.
const DECISIONS: &[&str] = &["cfg(unix)", "cfg(not(unix))"];

/// Everything that breaks the rule, one line each.
pub(crate) fn problems() -> anyhow::Result<Vec<String>> {
    let crates = root()?.join("crates");
    let mut found = Vec::new();
    for name in client()? {
        for file in sources(&crates.join(name).join("src"))? {
            let path = file.strip_prefix(&crates)?.to_string_lossy().into_owned();
            let text = fs::read_to_string(&file)?;
            found.extend(problems_of(&path, without_tests(&text)));
        }
    }
    for path in OF_UNIX.iter().chain(DECIDES) {
        if !crates.join(path).is_file() {
            found.push(format!("{path}: is in the list, and is not there"));
        }
    }
    Ok(found)
}

/// The crates of the client.
fn client() -> anyhow::Result<Vec<String>> {
    let mut crates = layers::with_imports(BUILT)?;
    crates.push(PROGRAM.to_owned());
    Ok(crates)
}

fn problems_of(path: &str, text: &str) -> Vec<String> {
    let is_unix = OF_UNIX.iter().any(|module| {
        let below = module.strip_suffix(".rs").unwrap_or(module);
        path == *module || path.starts_with(&format!("{below}/"))
    });
    let words = if is_unix { &[][..] } else { WORDS };
    let decisions = match DECIDES.contains(&path) {
        true => &[][..],
        false => DECISIONS,
    };
    let lines = text.lines().enumerate();
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter_map(|(at, line)| {
        // What a module hands on is named where that is decided.
        let hands_on = decisions.is_empty() && line.contains("use unix::");
        let mut named = words.iter().chain(decisions).filter(|_| !hands_on);
        let word = named.find(|word| names(line, word))?;
        Some(format!(
            "{path}:{}: names `{word}`, which belongs into a module of xtask/src/portable.rs",
            at + 1
        ))
    })
    .collect()
}

/// Whether a line has a word, and not as the end of a longer one.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// The text up to its tests, which stand last.
fn without_tests(text: &str) -> &str {
    let begin = text.find("\nmod tests {").unwrap_or(text.len());
    &text[..begin]
}

/// The sources of a crate but for those of its tests alone.
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder);
    for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default();
        if stem == "tests" || stem == "testing" {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Compiles the client without what is Unix's own.
pub(crate) fn check() -> anyhow::Result<()> {
    let problems = problems()?;
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    let root = root()?;
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => std::path::absolute(target)?,
        None => root.join("target"),
    };
    let copy = target.join("portable");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_of(&root, &copy)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut check = Command::new(cargo);
    check.args(["check", "--locked", "--package", "crabtalk"]);
    check.args(["--package", "crabtalk-webhook"]);
    check.current_dir(&copy).env("CARGO_TARGET_DIR", &target);
    let status = check.status().context("cannot run cargo check")?;
    if !status.success() {
        bail!(
            "the client does not compile without Unix; see {}",
            copy.display()
        );
    }
    fs::remove_dir_all(&copy)?;
    Ok(())
}

/// Copies the workspace, with no system that is Unix in the client's crates, and
/// each warning an error.
fn copy_of(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let lints = "[workspace.lints.rust]\n";
    ensure!(manifest.contains(lints), "Cargo.toml has no lints");
    let strict = manifest.replacen(lints, &format!("{lints}warnings = \"deny\"\n"), 1);
    write(&copy.join("Cargo.toml"), &strict)?;
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    write(&copy.join("Cargo.lock"), &lock)?;
    copy_folder(&root.join("xtask"), &copy.join("xtask"), &str::to_owned)?;
    let client = client()?;
    for entry in fs::read_dir(root.join("crates"))? {
        let from = entry?.path();
        let name = from.file_name().unwrap_or_default().to_string_lossy();
        let to = copy.join("crates").join(name.as_ref());
        match client.iter().any(|of_client| *of_client == name) {
            true => copy_folder(&from, &to, &without_unix)?,
            false => copy_folder(&from, &to, &str::to_owned)?,
        }
    }
    Ok(())
}

fn without_unix(text: &str) -> String {
    text.replace("cfg(unix)", "cfg(any())")
        .replace("cfg(not(unix))", "cfg(not(any()))")
        .replace("cfg!(unix)", "cfg!(any())")
        .replace("target_os = \"linux\"", "target_os = \"none\"")
}

/// Copies what cargo reads: sources, manifests and what sources include.
fn copy_folder(from: &Path, to: &Path, change: &dyn Fn(&str) -> String) -> anyhow::Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        let end = path.extension().unwrap_or_default();
        if path.is_dir() {
            // Nothing that is compiled here reads what tests were given.
            if path.file_name().is_some_and(|name| name != "corpus") {
                copy_folder(&path, &to, change)?;
            }
        } else if end == "rs" || end == "toml" {
            write(&to, &change(&fs::read_to_string(&path)?))?;
        } else {
            fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root.context("xtask lies in the workspace")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unixs_own_stands_in_the_modules_that_are_listed() {
        let problems = problems().unwrap();
        assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    }

    #[test]
    fn what_stands_elsewhere_is_named_with_its_line() {
        let found = |path: &str, text: &str| problems_of(path, text).join("\n");
        let uses = "use std::path::Path;\nuse std::os::unix::fs::MetadataExt;\n";
        assert_eq!(
            found("crabtalk-cli/src/ask.rs", uses),
            "crabtalk-cli/src/ask.rs:2: names `std::os::`, which belongs into a module of \
             xtask/src/portable.rs"
        );
        assert_eq!(found("crabtalk-cli/src/system/unix.rs", uses), "");
        assert_eq!(found("crabtalk-cli/src/system/unix/process.rs", uses), "");
        let decides = "#[cfg(unix)]\nmod unix;\n";
        assert_eq!(found("crabtalk-cli/src/system.rs", decides), "");
        assert!(found("crabtalk-cli/src/ask.rs", decides).contains("ask.rs:1: names `cfg(unix)`"));
        let in_words = "//! Not of `rustix`.\n";
        assert_eq!(found("crabtalk-cli/src/ask.rs", in_words), "");
        assert_eq!(without_tests("a\nmod tests {}\n"), "a");
    }
}
