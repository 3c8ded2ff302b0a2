//! The environment of children is an allow-list, so that no provider key or other
//! secret of the daemon reaches a command (RUN-10).

use std::ffi::{OsStr, OsString};

/// Variables by which a command finds its tools and the user's language.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "no_proxy",
    "NO_PROXY",
];

/// Allowed unless the address contains a password.
const PROXIES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];

/// The `PATH` of commands if the daemon has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The allowed variables of the daemon, and `CRABTALK=1`.
pub fn child_environment(
    own: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut passed: Vec<(OsString, OsString)> = own
        .into_iter()
        .filter(|(name, value)| is_allowed(name, value))
        .collect();
    if !passed.iter().any(|(name, _)| name == "PATH") {
        passed.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    passed.push(("CRABTALK".into(), "1".into()));
    passed
}

fn is_allowed(name: &OsStr, value: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    ALLOWED.contains(&name)
        || name.starts_with("LC_")
        || (PROXIES.contains(&name) && !value.as_encoded_bytes().contains(&b'@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_passes() {
        let own = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("OPENAI_API_KEY", "sk-1"),
            ("LD_PRELOAD", "x.so"),
            ("BASH_ENV", "/tmp/x"),
            ("CRABTALK_HOME", "/h"),
            ("http_proxy", "http://me:secret@proxy"),
            ("https_proxy", "http://proxy"),
        ];
        let passed: Vec<String> = child_environment(own.map(|(n, v)| (n.into(), v.into())))
            .into_iter()
            .map(|(n, v)| format!("{}={}", n.display(), v.display()))
            .collect();
        assert_eq!(
            passed,
            [
                "PATH=/bin",
                "LC_ALL=C",
                "https_proxy=http://proxy",
                "CRABTALK=1"
            ]
        );
    }
}
