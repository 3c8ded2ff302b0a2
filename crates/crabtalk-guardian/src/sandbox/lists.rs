//! Which files and folders a sandboxed command finds open, and which stay
//! closed even inside of those.

/// Folders of the system: programs, libraries, their configuration, and what
/// the kernel tells of itself.
pub(super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/sys",
    "/run/current-system",
    "/run/systemd/resolve",
    "/var/lib/dpkg",
    "/var/lib/alternatives",
];

/// Toolchains below the person's home. Never a whole `~/.cargo` or `~/.npm`
/// folder of a kind that keeps credentials beside its programs.
pub(super) const TOOLCHAINS: &[&str] = &[
    ".cargo/bin",
    ".cargo/env",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/config.toml",
    ".rustup",
    ".local/bin",
    ".local/lib",
    ".nvm",
    ".fnm",
    ".volta",
    ".bun/bin",
    ".deno/bin",
    ".pyenv",
    ".rbenv",
    ".asdf/installs",
    ".asdf/shims",
    ".asdf/bin",
    ".sdkman/candidates",
    "go",
    ".nix-profile",
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
];

/// Folders below the person's home that stay closed even inside a working
/// directory: keys and logins.
pub(super) const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".bash_history",
    ".zsh_history",
];
