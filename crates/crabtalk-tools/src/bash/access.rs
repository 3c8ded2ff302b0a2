//! The access that a call of `bash` asks for.

use super::BashArguments;
use crate::files::{Resolver, is_below};
use crabtalk_domain::tool::CommandAccess;
use std::path::{Path, PathBuf};

/// Longest DNS name.
const MAX_HOST_BYTES: usize = 253;

/// Kernel file systems, which no grant makes writable.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

impl BashArguments {
    /// The access as gate values: hosts in lower case, paths absolute
    /// and without links. Reads the disk.
    ///
    /// # Errors
    /// A host is not valid; a path does not exist, or no grant can
    /// open it, such as CrabTalk's home.
    pub(crate) fn access(
        &self,
        resolver: &Resolver<'_>,
        home: &Path,
    ) -> Result<CommandAccess, String> {
        let hosts = self.hosts.iter().map(|host| valid_host(host));
        let write = self.write.iter().map(|path| writable(path, resolver, home));
        Ok(CommandAccess {
            outside: self.escalate,
            read_only: false,
            hosts: hosts.collect::<Result<_, _>>()?,
            write: write.collect::<Result<_, _>>()?,
            reason: self.reason.trim().to_owned(),
        })
    }
}

/// Checks a host: `example.com`, `*.example.com`, `*` or an address.
fn valid_host(host: &str) -> Result<String, String> {
    let host = host.trim().trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() <= 63 && label.chars().all(is_plain)
    };
    let name = host.strip_prefix("*.").unwrap_or(&host);
    let is_name = name.len() <= MAX_HOST_BYTES && name.split('.').all(is_label);
    if host == "*" || is_name || host.parse::<std::net::IpAddr>().is_ok() {
        return Ok(host);
    }
    Err(format!(
        "`hosts`: {host:?} is not a valid host name: write names such as example.com or *.example.com, without scheme, port or path"
    ))
}

fn writable(text: &str, resolver: &Resolver<'_>, home: &Path) -> Result<PathBuf, String> {
    let path = resolver.lead(text).map_err(|e| format!("`write`: {e}"))?;
    let home = home.canonicalize().unwrap_or_else(|_| home.to_path_buf());
    let user_home = resolver
        .user_home
        .map(|h| h.canonicalize().unwrap_or_else(|_| h.to_path_buf()));
    let above_home = user_home.is_some_and(|h| h.starts_with(&path));
    let refused = if is_below(&path, &home) || home.starts_with(&path) {
        "CrabTalk's home is never writable for a command"
    } else if above_home || path == Path::new("/") {
        "the home folder as a whole is never writable in the sandbox: name a folder in it"
    } else if KERNEL.iter().any(|kernel| path.starts_with(kernel)) {
        "files of the kernel are never writable in the sandbox"
    } else if path.components().any(|part| part.as_os_str() == ".git") {
        "git's own files are never granted in the sandbox"
    } else if path.symlink_metadata().is_err() {
        "there is nothing at this path: name an existing folder above it"
    } else {
        return Ok(path);
    };
    Err(format!("`write`: {}: {refused}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_without_scheme() {
        for (host, valid) in [
            ("Example.COM.", Some("example.com")),
            ("*.example.com", Some("*.example.com")),
            ("*", Some("*")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("https://example.com", None),
            ("example.com:443", None),
            ("a*.example.com", None),
            ("a b", None),
            ("", None),
            ("a..b", None),
        ] {
            assert_eq!(valid_host(host).ok().as_deref(), valid, "{host}");
        }
    }

    #[test]
    fn write_refuses_homes_and_missing_paths() {
        let dir = tempfile::tempdir().expect("creates");
        let user = dir.path().canonicalize().expect("exists");
        let home = user.join(".crabtalk");
        for folder in ["work/out", "work/.git/hooks"] {
            std::fs::create_dir_all(user.join(folder)).expect("creates");
        }
        std::fs::create_dir_all(home.join("state")).expect("creates");
        let cwd = user.join("work");
        let resolver = Resolver {
            cwd: &cwd,
            user_home: Some(&user),
        };
        let opened = |text: &str| writable(text, &resolver, &home).ok();
        assert_eq!(opened("out"), Some(user.join("work/out")));
        assert_eq!(opened("~/work/../work/out"), Some(user.join("work/out")));
        for closed in [
            "~",
            "..",
            "/",
            "~/.crabtalk/state",
            "/proc/self",
            "missing",
            ".git/hooks",
        ] {
            assert_eq!(opened(closed), None, "{closed}");
        }
    }
}
