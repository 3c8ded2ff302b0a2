use super::*;

/// A definition with all special characters.
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
    let log = odd().log();
    for manager in [Manager::Systemd, Manager::Launchd, Manager::Schtasks] {
        let names_log = |definition| manager.start(&definition).unwrap().to_string();
        let name = log.rsplit('/').next().unwrap();
        assert!(names_log(odd()).contains(name), "{manager:?}");
        assert!(!names_log(odd().of_daemon()).contains(name), "{manager:?}");
    }
    let unit = systemd::unit(&odd().of_daemon());
    assert!(
        unit.contains("\nType=notify\nNotifyAccess=main\nExecStart="),
        "{unit}"
    );
    assert!(!systemd::unit(&odd()).contains("Type="));
    let mut with_path = odd();
    with_path.path = Some("/a b:/c%/\"d\"".to_owned());
    let unit = systemd::unit(&with_path);
    assert!(
        unit.contains("\nEnvironment=\"PATH=/a b:/c%%/\\\"d\\\"\"\n"),
        "{unit}"
    );
}

/// The texts of a property list's dictionary by their keys.
fn after_key<'a>(list: &'a roxmltree::Document<'_>, key: &str) -> roxmltree::Node<'a, 'a> {
    let found = list
        .descendants()
        .find(|node| node.has_tag_name("key") && node.text() == Some(key));
    let found = found.unwrap_or_else(|| panic!("no {key}"));
    found.next_sibling_element().expect("a value")
}

#[test]
fn a_property_list_reads_back() {
    let (definition, text) = (odd(), launchd::plist(&odd()));
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let list = roxmltree::Document::parse_with_options(&text, options).expect("XML");
    assert_eq!(after_key(&list, "Label").text(), Some("ai.crabtalk.search"));
    let words: Vec<_> = after_key(&list, "ProgramArguments")
        .children()
        .filter(roxmltree::Node::is_element)
        .map(|node| node.text().unwrap_or_default())
        .collect();
    assert_eq!(words, definition.command);
    assert_eq!(
        after_key(&list, "CRABTALK_HOME").text(),
        Some("/home/a b/50%/<crab>")
    );
    assert!(after_key(&list, "RunAtLoad").has_tag_name("true"));
}

#[test]
fn a_task_reads_back() {
    let definition = odd();
    let bytes = schtasks::task(&definition);
    assert_eq!(&bytes[..2], [0xff, 0xfe]);
    let text = schtasks::text(&definition);
    let task = roxmltree::Document::parse(&text).expect("XML");
    let of = |name: &str| {
        let found = task
            .descendants()
            .find(|node| node.tag_name().name() == name);
        found
            .and_then(|node| node.text())
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(of("Command"), "cmd.exe");
    assert!(of("Arguments").contains("set \"CRABTALK_HOME=/home/a b/50%/<crab>\""));
    assert!(of("Arguments").contains("\"/opt/my apps/100%/\\\"x\\\"/$HOME\\<&'>é\" serve \"a b\""));
    assert_eq!(
        of("Description"),
        "CrabTalk search: Finds 100% of <things> & \"more\""
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
    for manager in [Manager::Systemd, Manager::Launchd, Manager::Schtasks] {
        let shown = manager.start(&odd()).expect("a plan").to_string();
        assert!(shown.contains("ai.crabtalk.search"), "{shown}");
        assert!(shown.contains("# write "), "{shown}");
        let stopped = manager.stop(&odd()).expect("a plan").to_string();
        assert!(
            stopped.contains("# remove ") && stopped.contains("search.port"),
            "{stopped}"
        );
    }
}

#[test]
fn plan_stops_at_the_first_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (folder.path().join("a/b"), folder.path().join("c"));
    let plan = Plan(vec![
        Step::Write(first.clone(), b"x".to_vec()),
        Step::Try(words(&["surely-no-such-program"])),
        Step::Run(words(&["surely-no-such-program"])),
        Step::Write(second.clone(), b"y".to_vec()),
    ]);
    let error = plan
        .carry_out(&mut Vec::new())
        .expect_err("it is not there")
        .to_string();
    assert!(error.contains("is not installed"), "{error}");
    assert_eq!(std::fs::read(&first).expect("written"), b"x");
    assert!(!second.exists());
}

/// systemd's own tool checks the unit.
#[cfg(target_os = "linux")]
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
