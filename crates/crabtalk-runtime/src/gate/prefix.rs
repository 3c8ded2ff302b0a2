//! The beginning of a command that an owner may allow for good (GATE-4).
//!
//! Invariants: only of one plain command whose program is known to have
//! subcommands, and only program and subcommand: what stands behind a
//! program's name elsewhere may be a file, and allowing the rest behind it would
//! allow more than it says; a beginning is judged as a narrow rule of the agent's file
//! is, word by word, beside the rules that are there.

use super::approvals::Approval;
use super::plain::{Piece, Plain, Word};
use crabtalk_domain::{Permission, PermissionRule};

/// The tool whose subject is a command.
const TOOL: &str = "bash";

/// Programs of which the first word says what they do. What fetches and runs
/// programs of others by it (`npx`, `docker run`) is not among them.
const WITH_SUBCOMMANDS: &[&str] = &[
    "bazel",
    "brew",
    "bun",
    "bundle",
    "cabal",
    "cargo",
    "composer",
    "dart",
    "deno",
    "dotnet",
    "flutter",
    "gh",
    "git",
    "glab",
    "go",
    "gradle",
    "hg",
    "jj",
    "kubectl",
    "meson",
    "mix",
    "npm",
    "nx",
    "pip",
    "pnpm",
    "poetry",
    "rustup",
    "sbt",
    "stack",
    "svn",
    "swift",
    "systemctl",
    "tofu",
    "terraform",
    "uv",
    "yarn",
    "zig",
];

/// The beginning of a command that may be offered; `None` if there is none.
pub(crate) fn prefix_of(command: &str) -> Option<String> {
    let plain = Plain::read(command, None).ok()?;
    let [only] = plain.commands.as_slice() else {
        return None;
    };
    let program = text(only.words.first()?)?;
    let sub = text(only.words.get(1)?)?;
    let known = WITH_SUBCOMMANDS.contains(&program);
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_:".contains(c);
    let is_sub = sub.starts_with(|c: char| c.is_ascii_lowercase()) && sub.chars().all(is_word);
    (known && is_sub).then(|| format!("{program} {sub}"))
}

fn text(word: &Word) -> Option<&str> {
    match word.pieces.as_slice() {
        [Piece::Text(text)] => Some(text),
        [] | [Piece::Glob(_)] | [_, _, ..] => None,
    }
}

/// The rules that an allowed beginning is: itself, and with anything behind it.
pub(crate) fn rules(prefix: &str) -> [PermissionRule; 2] {
    let rule = |pattern: String| PermissionRule {
        tool: TOOL.to_owned(),
        pattern: Some(pattern),
        permission: Permission::Allow,
    };
    [rule(prefix.to_owned()), rule(format!("{prefix} *"))]
}

/// The rules of the beginnings that were allowed to this agent, for this sender,
/// in this folder.
pub(crate) fn allowed(
    approvals: &[Approval],
    agent: &str,
    sender: &str,
    cwd: &str,
) -> Vec<PermissionRule> {
    let fits = |approval: &&Approval| {
        approval.prefix
            && approval.tool == TOOL
            && approval.agent == agent
            && approval.sender == sender
            && approval.cwd == cwd
            // What a hand wrote into the file is held to the same.
            && prefix_of(&approval.exact).as_deref() == Some(&*approval.exact)
    };
    let fitting = approvals.iter().filter(fits);
    fitting
        .flat_map(|approval| rules(&approval.exact))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_with_its_subcommand_is_offered() {
        for (command, want) in [
            ("cargo test -p store", Some("cargo test")),
            ("git log --oneline -5", Some("git log")),
            ("npm run test:unit", Some("npm run")),
            ("cargo test", Some("cargo test")),
            // What follows is no subcommand.
            ("cargo +nightly test", None),
            ("git -C /elsewhere log", None),
            ("git", None),
            ("cargo ./x", None),
            // Nobody says what the first word of these is.
            ("rm precious", None),
            ("python3 manage", None),
            ("sudo git push", None),
            ("env git push", None),
            ("./git log", None),
            ("sh -c ls", None),
            ("npx create", None),
            // More than one plain command.
            ("cargo test && rm -r /", None),
            ("cargo test | tee out", None),
            ("cargo test > out", None),
            ("cargo $(rm -r /)", None),
            ("cargo test; ls", None),
            ("X=1 cargo test", None),
            ("cargo te*", None),
            ("", None),
        ] {
            assert_eq!(prefix_of(command).as_deref(), want, "{command}");
        }
    }
}
