//! Files that other programs run later, outside the sandbox, without a person
//! starting them: editing them asks in every mode but `full`.
//!
//! The list is a convenience, not a boundary: a sandboxed command can write
//! these files too, and a Makefile or a test is not on it.

use std::path::{Component, Path};

/// Names of files and folders, anywhere below the folder.
const NAMES: &[&str] = &[
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".circleci",
    ".crabtalk",
    ".devcontainer",
    ".envrc",
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".gitlab-ci.yml",
    ".github",
    ".husky",
    ".idea",
    ".mise.toml",
    ".pre-commit-config.yaml",
    ".profile",
    ".travis.yml",
    ".vscode",
    ".woodpecker.yml",
    ".zed",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "mise.toml",
];

/// Whether a file below `folder` is run by other programs later.
pub(crate) fn is_run_later(path: &Path, folder: &Path) -> bool {
    let below = path.strip_prefix(folder).unwrap_or(path);
    below.components().any(|part| match part {
        Component::Normal(name) => NAMES
            .iter()
            .any(|known| name.to_string_lossy().eq_ignore_ascii_case(known)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    })
}
