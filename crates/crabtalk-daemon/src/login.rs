//! The environment as configuration reads it, and who the daemon's user is.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Where the system's own users stand.
const PASSWD: &str = "/etc/passwd";

/// Read of it at most; the largest real ones have a few hundred kilobytes.
const MAX_PASSWD_BYTES: u64 = 4 * 1024 * 1024;

/// A variable. `USER` is known also where nobody sets it, as under a service
/// manager: the owner is whoever the process belongs to.
pub(crate) fn env(name: &str) -> Option<OsString> {
    let set = std::env::var_os(name).filter(|value| !value.is_empty());
    match set {
        None if name == "USER" => LOGIN.clone().map(OsString::from),
        set => set,
    }
}

static LOGIN: LazyLock<Option<String>> = LazyLock::new(|| {
    let uid = rustix::process::geteuid().as_raw();
    let mut passwd = String::new();
    let read =
        File::open(PASSWD).and_then(|file| file.take(MAX_PASSWD_BYTES).read_to_string(&mut passwd));
    let listed = read.ok().and_then(|_| login_of(&passwd, uid));
    listed.or_else(by_directory)
});

/// The name of a user in a file of the form of `/etc/passwd`.
fn login_of(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let id: u32 = fields.nth(1)?.parse().ok()?;
        (id == uid).then(|| name.to_owned())
    })
}

/// Asks the system, which may know users of a directory.
fn by_directory() -> Option<String> {
    let mut id = Command::new("id");
    let asked = id.arg("-un").stdin(Stdio::null()).stderr(Stdio::null());
    let output = asked
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let name = String::from_utf8(output.stdout).ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_number() {
        let passwd =
            "root:x:0:0::/root:/bin/sh\n# comment\nann:x:1000:1000::/home/ann:\n:x:7:7::\n";
        assert_eq!(login_of(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(login_of(passwd, 0).as_deref(), Some("root"));
        assert_eq!(login_of(passwd, 7), None);
    }
}
