use super::*;
use crabtalk_domain::{Permission, PermissionRule};
use std::fs;

const WHOLE: &str = r#"---
# reviews
description: Reviews code and answers in short.
model: sonnet
fallback: haiku, local
thinking: false
max_iterations: 50
compact_threshold: none
tools: []
skills: ["check-*"]
mcps: [search]
members: [researcher]
permissions: { bash: ask, "bash(git status*)": allow, "edit(/etc/**)": deny }
mode: auto
cwd: ~/work
compact_prompt: Be short.
budget: { tokens_per_day: 2000000 }
---

You are a reviewer.
--- not a fence
"#;

fn parse(text: &str) -> Result<(AgentFile, Vec<Warning>), Error> {
    AgentFile::parse(text, Path::new("rev.md"))
}

fn fails(frontmatter: &str, want: &str) {
    match parse(&format!("---\n{frontmatter}\n---\nhi\n")) {
        Ok(_) => panic!("accepted: {frontmatter}"),
        Err(error) => assert_eq!(error.to_string(), want, "{frontmatter}"),
    }
}

#[test]
fn every_setting_is_read() {
    let (file, warnings) = parse(WHOLE).unwrap();
    assert_eq!(warnings, []);
    let settings = &file.settings;
    assert_eq!(settings.fallback, ["haiku", "local"]);
    assert_eq!(settings.compact_threshold, Some(CompactThreshold::Off));
    assert_eq!(settings.skills, ["check-*"]);
    assert_eq!(settings.cwd.as_deref(), Some("~/work"));
    assert_eq!(settings.budget.tokens_per_day, Some(2_000_000));
    let rule = |tool: &str, pattern: Option<&str>, permission| PermissionRule {
        tool: tool.into(),
        pattern: pattern.map(Into::into),
        permission,
    };
    assert_eq!(
        settings.permissions,
        [
            rule("bash", None, Permission::Ask),
            rule("bash", Some("git status*"), Permission::Allow),
            rule("edit", Some("/etc/**"), Permission::Deny),
        ]
    );
    assert_eq!(file.prompt, "You are a reviewer.\n--- not a fence");
    assert!(file.frontmatter.starts_with("# reviews\n"), "comments stay");
}

#[test]
fn written_text_reads_the_same() {
    let (file, _) = parse(WHOLE).unwrap();
    assert_eq!(parse(&file.to_text()).unwrap().0, file);
    let (empty, _) = AgentFile::of("", "hi").unwrap();
    assert_eq!(empty.to_text(), "---\n---\nhi\n");
    assert_eq!(parse(&empty.to_text()).unwrap().0, empty);
}

#[test]
fn file_may_lack_frontmatter_or_have_a_bom() {
    assert_eq!(parse("You are.\n").unwrap().0.prompt, "You are.");
    assert_eq!(
        parse("---\n---\n").unwrap().0.settings,
        AgentSettings::default()
    );
    let (file, _) = parse("\u{feff}---\r\nmodel: m\r\n---\r\nHi\r\n").unwrap();
    assert_eq!(
        (file.settings.model.as_deref(), file.prompt.as_str()),
        (Some("m"), "Hi")
    );
}

#[test]
fn empty_file_and_nul_bytes_are_refused() {
    for (text, part) in [
        ("", "is empty"),
        ("\u{feff}\n \n", "is empty"),
        ("\0\0\0\0", "NUL"),
        ("---\nmodel: m\n---\nYou \0\0", "NUL"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
}

#[test]
fn sent_frontmatter_may_be_json_and_is_kept() {
    for text in [
        r#"{"model": "m", "permissions": {"bash(ls *)": "allow"}, "compact_threshold": 5}"#,
        "model: m # why\ncompact_threshold: 5\npermissions:\n  bash(ls *): allow\n",
    ] {
        let (file, warnings) = AgentFile::of(text, "hi").unwrap();
        assert_eq!(warnings, []);
        let settings = &file.settings;
        assert_eq!(
            settings.compact_threshold,
            Some(CompactThreshold::Tokens(5))
        );
        assert_eq!(settings.permissions[0].pattern.as_deref(), Some("ls *"));
        assert_eq!(file.frontmatter.trim(), text.trim());
        assert_eq!(parse(&file.to_text()).unwrap().0, file, "{text}");
    }
}

#[test]
fn wrong_values_name_position_key_and_remedy() {
    fails(
        "thinking: yes",
        "rev.md:2:11: thinking: expected a boolean (true or false), found a string",
    );
    fails(
        "model: 4",
        "rev.md:2:8: model: expected a string (put it in quotes), found a whole number",
    );
    fails(
        "a: 1\nmax_iterations: 0",
        "rev.md:3:17: max_iterations: expected a whole number of at least 1, found 0",
    );
    fails(
        "compact_threshold: off",
        "rev.md:2:20: compact_threshold: expected a number of tokens or none, found string \"off\"",
    );
    fails(
        "tools: {a: b}",
        "rev.md:2:8: tools: expected a list of strings, found map",
    );
    fails(
        "- a\n- b",
        "rev.md:2:1: expected a table of keys, found a list",
    );
    fails(
        "permissions:\n  bash: alow",
        "rev.md:3:9: permissions.bash: expected one of allow, ask, deny, found \"alow\" (did you mean allow?)",
    );
    fails(
        "permissions:\n  \"bash(git\": allow",
        "rev.md:3:3: permissions: \"bash(git\": expected a tool or tool(pattern), as in bash(git status *)",
    );
    fails(
        "model: [a",
        "rev.md:2:8: not valid YAML: unclosed bracket '['",
    );
    fails(
        "model: a\nmodel: b",
        "rev.md:3:1: not valid YAML: duplicate mapping key: model",
    );
    fails(
        "model: *x",
        "rev.md:2:8: not valid YAML: alias references unknown anchor",
    );
    assert_eq!(
        parse("---\nmodel: m\n").unwrap_err().to_string(),
        "rev.md:1:1: the frontmatter that begins here has no end: close it with a line `---`"
    );
    let huge = "x".repeat(70_000);
    fails(
        &format!("# {huge}"),
        "rev.md:1:1: the frontmatter has 70003 bytes, the limit is 65536",
    );
    assert_eq!(
        AgentFile::of(r#"{"thinking": 1}"#, "")
            .unwrap_err()
            .to_string(),
        "config:2:14: thinking: expected a boolean (true or false), found a whole number"
    );
}

#[test]
fn unknown_keys_warn_with_the_nearest() {
    let (_, warnings) = parse("---\nmodel: m\ntols: [a]\nbudget: {x: 1}\n---\n").unwrap();
    assert_eq!(
        warnings.iter().map(Warning::to_string).collect::<Vec<_>>(),
        [
            "rev.md:3:1: tols: unknown key, ignored; did you mean tools?",
            "rev.md:4:10: budget.x: unknown key, ignored",
        ]
    );
}

#[test]
fn broken_file_breaks_only_its_own_agent() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.md", "---\nmodel: m\n---\nA"),
        ("B.md", "B"),
        ("b.md", "b"),
        ("bad name.md", "x"),
        ("broken.md", "---\nmodel: [\n---\n"),
        (".hidden.md", ""),
        ("notes.txt", ""),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", folder.path().join("gone.md")).unwrap();
    let found = load_agents(folder.path()).unwrap();
    let found = found
        .iter()
        .map(|entry| match &entry.agent {
            Ok((file, _)) => format!("{} {}", entry.name, file.prompt),
            Err(error) => error
                .with_causes()
                .replace(&format!("{}/", folder.path().display()), ""),
        })
        .collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            "B B",
            "a A",
            "b.md: the name of the agent B differs only in case: rename one of the files",
            "bad name.md: \"bad name\" is not an agent's name: use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit",
            "broken.md:2:8: not valid YAML: unclosed bracket '['",
            "cannot read gone.md: is a link whose target does not exist",
        ]
    );
    assert!(load_agents(&folder.path().join("none")).unwrap().is_empty());
}

#[test]
fn end_of_frontmatter_within_it_is_refused() {
    for sent in [
        "---\ntools: [read]\npermissions: { bash: deny }\n",
        "tools: [read]\r\n---\r\npermissions: { bash: deny }\r\n",
    ] {
        let error = AgentFile::of(sent, "You are Ada.").unwrap_err().to_string();
        assert!(
            error.contains("would end the frontmatter"),
            "{sent:?}: {error}"
        );
    }
}

#[test]
fn inner_wildcards_of_command_rules_warn() {
    for (rule, warns) in [
        ("bash(git * --stat)", true),
        ("bash(l? x)", true),
        ("bash(git status *)", false),
        ("bash(git status*)", false),
        ("bash(*)", false),
        ("read(src/*/x)", false),
    ] {
        let (_, warnings) = parse(&format!("---\npermissions:\n  {rule:?}: allow\n---\n")).unwrap();
        assert_eq!(warnings.len(), usize::from(warns), "{rule}: {warnings:?}");
    }
}
