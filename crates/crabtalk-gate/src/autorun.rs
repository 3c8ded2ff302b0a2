//! Files that other programs run later, outside the sandbox, without being asked to:
//! editing them asks in every mode but `full`.
//!
//! The list is a convenience, not a boundary: a sandboxed command can write these files
//! too, and the list contains neither Makefiles nor tests.

use crabtalk_domain::glob_matches;
use std::path::Path;

/// Names of files and folders anywhere below the run's folder, in lower case.
const NAMES: &str = "
    .bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .profile .tcshrc
    .zlogin .zlogout .zprofile .zshenv .zshrc .inputrc config.fish
    .envrc .mise.toml mise.toml .tool-versions .devcontainer
    .git .gitconfig .gitmodules .husky .pre-commit-config.yaml lefthook.yml .lefthook.yml
    .github .gitlab-ci.yml .circleci .travis.yml .woodpecker.yml .woodpecker .drone.yml
    .buildkite .cirrus.yml appveyor.yml .appveyor.yml azure-pipelines.yml
    bitbucket-pipelines.yml jenkinsfile
    .idea .vscode *.code-workspace .zed .exrc .nvim.lua .nvimrc .vimrc .dir-locals.el
    .crabtalk .claude .cursor .mcp.json
";

/// Whether other programs run a file below `folder` later.
pub(crate) fn is_run_later(path: &Path, folder: &Path) -> bool {
    let below = path.strip_prefix(folder).unwrap_or(path);
    below.iter().any(|part| {
        let part = part.to_string_lossy().to_lowercase();
        NAMES
            .split_whitespace()
            .any(|name| glob_matches(name, &part))
    })
}
