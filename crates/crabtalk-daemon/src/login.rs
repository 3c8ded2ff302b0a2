//! The environment variables that the configuration reads.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};

/// Returns a variable of the environment. If `USER` is not set, as under a service
/// manager, it is the login of the process's user.
pub(crate) fn env(name: &str) -> Option<OsString> {
    let set = std::env::var_os(name).filter(|value| !value.is_empty());
    match set {
        None if name == "USER" => login(),
        set => set,
    }
}

fn login() -> Option<OsString> {
    let mut id = Command::new("id");
    let output = id.arg("-un").stdin(Stdio::null()).stderr(Stdio::null());
    let output = output.output().ok()?;
    let name = output.stdout.trim_ascii();
    (output.status.success() && !name.is_empty()).then(|| OsString::from_vec(name.to_vec()))
}
