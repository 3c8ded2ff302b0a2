use super::*;

/// A definition with every special character.
fn odd() -> Definition {
    let command = ["/opt/my apps/100%/\"x\"/$HOME\\<&'>é", "serve", "a b"];
    Definition::new(
        Component::new("search", "Finds 100% of <things> & \"more\""),
        command.map(OsString::from).to_vec(),
        Home::at("/home/a b/50%/<crab>"),
    )
    .expect("text")
}

#[test]
fn a_unit_is_escaped() {
    let unit = systemd::unit(&odd());
    let line = |name: &str| {
        let found = unit.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} in {unit}"))
    };
    assert_eq!(
        line("ExecStart="),
        r#""/bin/sh" "-c" "exec \"$$0\" \"$$@\"" "/opt/my apps/100%%/\"x\"/$$HOME\\<&'>é" "serve" "a b""#
    );
    assert_eq!(
        line("Environment="),
        r#""CRABTALK_HOME=/home/a b/50%%/<crab>""#
    );
    assert_eq!(
        line("StandardError="),
        "append:/home/a b/50%%/<crab>/logs/search.log"
    );
    assert_eq!(
        line("Description="),
        "CrabTalk search: Finds 100%% of <things> & \"more\""
    );
}

#[test]
fn daemon_notifies_systemd_and_writes_its_own_log() {
    let unit = systemd::unit(&odd().of_daemon());
    assert!(
        unit.contains("\nType=notify\nNotifyAccess=main\nExecStart="),
        "{unit}"
    );
    assert!(!unit.contains("append:"), "{unit}");
    assert!(!systemd::unit(&odd()).contains("Type="));
    let mut with_path = odd();
    with_path.path = Some("/a b:/c%/\"d\"".to_owned());
    let unit = systemd::unit(&with_path);
    assert!(
        unit.contains("\nEnvironment=\"PATH=/a b:/c%%/\\\"d\\\"\"\n"),
        "{unit}"
    );
}

#[test]
fn invalid_commands_are_refused() {
    let make = |program: &str| {
        Definition::new(
            Component::new("x", ""),
            vec![program.into()],
            Home::at("/h"),
        )
    };
    for (program, why) in [
        ("/a\nb", "control"),
        ("relative", "absolute"),
        ("/a\0", "control"),
    ] {
        let error = make(program).expect_err(program).to_string();
        assert!(error.contains(why), "{program:?}: {error}");
    }
    assert!(Definition::new(Component::new("x", ""), Vec::new(), Home::at("/h")).is_err());
}

#[test]
fn a_plan_shows_what_it_would_do() {
    let shown = odd().start().expect("a plan").to_string();
    assert!(shown.contains("ai.crabtalk.search.service"), "{shown}");
    assert!(shown.contains("# write "), "{shown}");
    let stopped = odd().stop().expect("a plan").to_string();
    assert!(
        stopped.contains("# remove ") && stopped.contains("search.port"),
        "{stopped}"
    );
}

#[test]
fn plan_stops_at_the_first_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (folder.path().join("a/b"), folder.path().join("c"));
    let plan = Plan(vec![
        Step::Write(first.clone(), "x".to_owned()),
        Step::Try(words(&["surely-no-such-program"])),
        Step::Run(words(&["surely-no-such-program"])),
        Step::Write(second.clone(), "y".to_owned()),
    ]);
    let error = plan
        .carry_out(&mut Vec::new())
        .expect_err("it is not there")
        .to_string();
    assert!(error.contains("not on this machine"), "{error}");
    assert_eq!(std::fs::read(&first).expect("written"), b"x");
    assert!(!second.exists());
}

/// systemd's own program reads the unit.
#[test]
fn systemd_understands_the_unit() {
    use std::os::unix::fs::PermissionsExt;
    let test = "systemd_understands_the_unit";
    if !crabtalk_testkit::tools::has_tools(test, &["systemd-analyze"]) {
        return;
    }
    for name in ["my 100% program", "\"quoted\" $x\\ 'y'"] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(name);
        std::fs::write(&program, "#!/bin/sh\n").expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("set");
        let definition = Definition::new(
            Component::new("search", "Finds 100%"),
            vec![program.into(), "serve".into()],
            Home::at(folder.path().join("ho me")),
        )
        .expect("text");
        let unit = folder.path().join("ai.crabtalk.search.service");
        std::fs::write(&unit, systemd::unit(&definition)).expect("written");
        let output = std::process::Command::new("systemd-analyze")
            .args(["verify", "--user", "--man=no"])
            .arg(&unit)
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("HOME", folder.path())
            .output()
            .expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("ai.crabtalk.search"), "{name}: {said}");
    }
}
