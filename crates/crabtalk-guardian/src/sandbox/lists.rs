//! The files and folders that are open to a sandboxed command, and those that stay
//! closed inside open folders. Lists are separated by white space.

/// System folders: programs, libraries, their configuration, and kernel
/// information.
pub(super) const SYSTEM: &str = "
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /gnu /snap /sys
    /run/current-system /run/systemd/resolve /var/lib/dpkg /var/lib/alternatives
";

/// Kernel file systems that show more to root.
pub(super) const KERNEL_ONLY: &str = "
    /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security /sys/fs/bpf /sys/firmware
";

/// System folders with files that only root may read.
pub(super) const ROOT_ONLY: &str = "/etc /opt";

/// Toolchains below the user's home, and git's configuration. Folders that also
/// contain credentials, such as `~/.cargo`, are never listed whole.
pub(super) const TOOLCHAINS: &str = "
    .cargo/bin .cargo/env .cargo/config.toml .rustup go/bin
    .local/bin .local/lib .local/share/uv .local/share/mise/installs .local/share/pipx
    .nvm .fnm .volta .bun/bin .deno/bin .pyenv .rbenv
    .asdf/installs .asdf/shims .asdf/bin .sdkman/candidates .nix-profile
    .gitconfig .config/git/config .config/git/ignore .config/git/attributes
";

/// Writable folders below the home, with private contents per project.
pub(super) const PRIVATE_CACHES: &str = ".cargo .cache .gradle";

/// Caches below the home that are overlaid with the project's changes.
pub(super) const SHARED_CACHES: &str = "
    .cargo/registry .cargo/git .npm .local/share/pnpm go/pkg .m2/repository
    .cache/pip .cache/go-build .cache/uv .cache/yarn .gradle/caches .gradle/wrapper
";

/// Variables that move one of those folders.
pub(super) const MOVED: &[(&str, &str)] = &[
    (".cargo", "CARGO_HOME"),
    (".rustup", "RUSTUP_HOME"),
    (".cache", "XDG_CACHE_HOME"),
    ("go", "GOPATH"),
    (".pyenv", "PYENV_ROOT"),
    (".nvm", "NVM_DIR"),
];

/// Files and folders below the user's home that stay closed inside an
/// open folder: keys, logins, tokens, browser profiles, histories.
pub(super) const SECRETS: &str = "
    .ssh .gnupg .password-store .local/share/keyrings .local/share/kwalletd
    .aws .azure .kube .docker .oci .vault-token .terraformrc .terraform.d
    .config/gcloud .config/gh .config/glab-cli .config/hub .config/op .config/doctl
    .config/rclone .config/containers .config/git/credentials .git-credentials
    .netrc .npmrc .pypirc .yarnrc.yml .pgpass .my.cnf .gem/credentials
    .cargo/credentials .cargo/credentials.toml .m2/settings.xml .gradle/gradle.properties
    .claude .claude.json .codex .gemini
    .mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware
    .config/microsoft-edge .config/vivaldi .config/opera .config/Signal
    .bash_history .zsh_history .python_history .local/share/fish/fish_history
";

/// Files of a project that are hidden from commands with network, in
/// lower case: a whole name, a prefix (`x*`) or a suffix (`*x`).
pub(super) const SECRET_FILES: &str = "
    .env .env.* *.env .envrc *.pem *.key *.p8 *.p12 *.pfx *.jks id_rsa* id_ed25519* id_ecdsa*
    .npmrc .pypirc .netrc credentials.json service-account*.json
";

/// Examples, which contain no secret.
pub(super) const EXAMPLES: &str = ".env.example .env.sample .env.template";

/// Folders that are not searched for secret files.
pub(super) const UNSEARCHED: &str = ".git node_modules target";

/// Splits a list.
pub(super) fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_ascii_whitespace()
}
