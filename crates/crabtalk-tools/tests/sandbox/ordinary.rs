//! The whole of this suite once more, as a user without any right.

use crabtalk_testkit::tools::{has_tools, skip};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Set for the second run.
const AS_USER: &str = "CRABTALK_TEST_AS_USER";

/// The user `nobody`.
const NOBODY: &str = "65534";

#[test]
fn an_ordinary_user_is_held_by_the_same_walls() {
    let test = "an_ordinary_user_is_held_by_the_same_walls";
    if std::env::var_os(AS_USER).is_some() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        skip(test, "only root can become another user");
        return;
    }
    if !has_tools(test, &["setpriv"]) {
        return;
    }
    // Where that user may read and run them.
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    open(folder.path(), 0o755);
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        open(&to, 0o755);
        to
    };
    let suite = copy(&std::env::current_exe().unwrap(), "suite");
    let guardian = copy(
        env!("CARGO_BIN_EXE_test-tools-guardian").as_ref(),
        "guardian",
    );
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    open(&temporary, 0o1777);
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .args([suite.as_os_str(), "--nocapture".as_ref()])
        .current_dir("/")
        .env(AS_USER, "1")
        .env("CRABTALK_TEST_GUARDIAN", guardian)
        .env("TMPDIR", temporary)
        .env_remove("CRABTALK_UPDATE_DOCS")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    for line in said.lines() {
        if ["SKIPPED", "seed ", " commands"]
            .iter()
            .any(|s| line.contains(s))
        {
            println!("as an ordinary user: {line}");
        }
    }
}
