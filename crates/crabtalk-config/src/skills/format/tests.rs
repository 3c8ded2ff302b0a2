use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Result<(Document, Vec<Finding>), Finding> {
    parse(text.as_bytes(), Path::new("SKILL.md"))
}

fn findings(text: &str) -> Vec<String> {
    let all = match read(text) {
        Ok((_, findings)) => findings,
        Err(finding) => vec![finding],
    };
    all.iter().map(ToString::to_string).collect()
}

const GOOD: &str = "---
name: pdf-tools
description: Fills forms. Use when handling PDFs.
license: MIT
compatibility: Needs qpdf
metadata:
  author: me
  version: \"1.0\"
allowed-tools: Bash(git add:*) Read
---

# PDF

Do it.
";

#[test]
fn complete_file_is_read() {
    let (document, findings) = read(GOOD).unwrap();
    assert_eq!(findings, []);
    let metadata = [("author", "me"), ("version", "1.0")];
    assert_eq!(
        document,
        Document {
            name: Some("pdf-tools".into()),
            name_line: Some(2),
            description: Some("Fills forms. Use when handling PDFs.".into()),
            license: Some("MIT".into()),
            compatibility: Some("Needs qpdf".into()),
            metadata: metadata.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            allowed_tools: vec!["Bash(git add:*)".into(), "Read".into()],
            body: "# PDF\n\nDo it.".into(),
        }
    );
}

#[test]
fn bom_line_ends_and_trailing_spaces_are_ignored() {
    let expected = read(GOOD).unwrap();
    for text in [
        format!("\u{feff}{GOOD}"),
        GOOD.replace('\n', "\r\n"),
        GOOD.replace('\n', "\r"),
        GOOD.replace("---\n", "---  \n"),
        GOOD.trim_end().to_owned(),
    ] {
        assert_eq!(read(&text).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn faults_are_reported_with_line_and_loaded() {
    let long = "x".repeat(1025);
    let wide = "数".repeat(1024);
    let compatibility = "y".repeat(501);
    for (front, wanted) in [
        ("name: a\ndescription: b", vec![]),
        (&*format!("name: a\ndescription: {wide}"), vec![]),
        (
            "name: PDF\ndescription: b",
            vec!["SKILL.md:2: the name \"PDF\" has upper-case letters; for example `pdf`"],
        ),
        ("description: b", vec!["SKILL.md: there is no `name`; add"]),
        (
            "name:\ndescription: b",
            vec!["SKILL.md:2: `name` is empty", "there is no `name`"],
        ),
        (
            "name: 12\ndescription: b",
            vec!["SKILL.md:2: `name` is not a text; write `name: \"12\"`"],
        ),
        ("name: a", vec!["SKILL.md: there is no `description`"]),
        (
            "name: a\ndescription: [b, c]",
            vec![
                "SKILL.md:3: `description` is not a text",
                "there is no `description`",
            ],
        ),
        (
            &*format!("name: a\ndescription: {long}"),
            vec!["SKILL.md:3: `description` has 1025 characters, the limit is 1024; shorten"],
        ),
        (
            &*format!("name: a\ndescription: b\ncompatibility: {compatibility}"),
            vec!["SKILL.md:4: `compatibility` has 501 characters, the limit is 500"],
        ),
        (
            "name: a\ndescription: b\nversion: 1\nallowed_tools: Read",
            vec![
                "SKILL.md:4: `version` is not a field of a skill; the fields are",
                "SKILL.md:5: `allowed_tools` is not a field of a skill; write `allowed-tools`",
            ],
        ),
        (
            "name: a\ndescription: b\nmetadata:\n  version: 1.0\n  tags: [x]",
            vec![
                "SKILL.md:4: `metadata.version` is not a text; write `version: \"1.0\"`",
                "SKILL.md:4: `metadata.tags` is not a text",
            ],
        ),
        (
            "name: a\ndescription: b\nmetadata: c",
            vec!["SKILL.md:4: `metadata` is not a table"],
        ),
        (
            "name: a\ndescription: b\nallowed-tools: [Read, 1, 'Bash(']",
            vec![
                "SKILL.md:4: `allowed-tools` has an entry that is not a text",
                "SKILL.md:4: `allowed-tools` has \"Bash(\", which names no tool",
            ],
        ),
        (
            "name: a\ndescription: Use when: always",
            vec!["SKILL.md:3: not valid YAML:"],
        ),
    ] {
        let text = format!("---\n{front}\n---\nbody\n");
        let (document, found) = read(&text).unwrap_or_else(|e| panic!("{front}: {e}"));
        assert_eq!(found.len(), wanted.len(), "{front}: {found:?}");
        for (finding, wanted) in found.iter().zip(wanted) {
            assert_eq!(finding.level, Level::Wrong, "{front}");
            assert!(finding.to_string().contains(wanted), "{finding} / {wanted}");
        }
        assert_eq!(document.body, "body", "{front}");
        assert!(document.description.is_some(), "{front}");
    }
}

#[test]
fn values_that_lack_quotes_are_understood() {
    let text = "---\nname: a\ndescription: It's for: \"PDFs\"\nlicense: MIT\n---\nx";
    let (document, _) = read(text).unwrap();
    assert_eq!(document.description.as_deref(), Some("It's for: \"PDFs\""));
    assert_eq!(document.license.as_deref(), Some("MIT"));
}

#[test]
fn all_text_styles_are_read() {
    for (value, wanted) in [
        (">-\n  two\n  lines", "two lines"),
        ("|\n  two\n  lines", "two\nlines"),
        ("two\n  lines", "two lines"),
        ("\"quoted: \\\"yes\\\" 🦀\"", "quoted: \"yes\" 🦀"),
        ("'it''s'", "it's"),
        ("yes", "yes"),
        ("2026-01-01", "2026-01-01"),
    ] {
        let text = format!("---\nname: a\ndescription: {value}\n---\nx");
        let (document, findings) = read(&text).unwrap();
        assert_eq!(document.description.as_deref(), Some(wanted));
        assert_eq!(findings, [], "{value}");
    }
}

#[test]
fn missing_description_is_taken_from_the_body() {
    let (document, _) = read("# Check feeds\n\nDo it.").unwrap();
    assert_eq!(document.description.as_deref(), Some("Check feeds"));
    assert_eq!(document.body, "# Check feeds\n\nDo it.");
    for text in [
        "",
        "\n\n",
        "---\nname: a\n---\n",
        "---\n---\n",
        "---\n# x\n---\n",
    ] {
        let (document, found) = read(text).unwrap();
        assert_eq!(document.description, None, "{text}");
        assert!(found.iter().any(|f| f.level == Level::Refused), "{text}");
    }
}

#[test]
fn invalid_frontmatter_is_refused() {
    let bomb = {
        let mut text = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for n in 1..12 {
            let before = format!("*a{}, ", n - 1).repeat(9);
            text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        text + "---\nbody"
    };
    let merges = format!("---\nname: &n {}\n---\nx", "[".repeat(5_000));
    let many = format!("---\n{}---\nx", "k: v\n".repeat(10));
    let wide = format!("---\nmetadata: [{}]\n---\nx", "1,".repeat(20_000));
    let long = format!("---\ndescription: {}\n---\nx", "x".repeat(70_000));
    for (text, line, what) in [
        (&*bomb, 4, "the frontmatter is refused: it has more than"),
        (&*merges, 0, "the frontmatter is refused"),
        (&*wide, 2, "the frontmatter is refused: it has more than"),
        (
            &*many,
            3,
            "the frontmatter is refused: duplicate mapping key: k",
        ),
        (&*long, 1, "the limit is 65536"),
        ("---\nname: a\n", 1, "has no end"),
        ("---", 1, "has no end"),
        ("---\njust words\n---\nx", 2, "the frontmatter is refused"),
        ("---\n- a\n---\nx", 2, "the frontmatter is refused"),
        ("---\na: {\n---\nx", 0, "the frontmatter is refused"),
    ] {
        let start: String = text.chars().take(40).collect();
        let finding = read(text).expect_err(&start);
        assert_eq!(finding.level, Level::Refused);
        assert!(finding.what.contains(what), "{start}: {finding}");
        assert!(finding.what.len() < 300, "{start}: {finding}");
        assert!(!finding.what.contains("Policy"), "{finding}");
        if line > 0 {
            assert_eq!(finding.line, Some(line), "{start}: {finding}");
        }
    }
    let finding = parse(b"---\nname: \xff\n---\n", Path::new("x/SKILL.md")).unwrap_err();
    assert_eq!(
        finding.to_string(),
        "x/SKILL.md:2: is not UTF-8 text; save it as UTF-8"
    );
}

#[test]
fn advice_is_no_fault() {
    let long = format!("{GOOD}{}", "line\n".repeat(500));
    for (text, what) in [
        (
            "---\nname: a\ndescription: b\n---\n",
            "there is no text below",
        ),
        (&*long, "the text has 503 lines"),
    ] {
        let (_, found) = read(text).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].level, Level::Advice);
        assert!(found[0].what.contains(what), "{}", found[0]);
    }
    assert_eq!(findings("\n---\nname: a\ndescription: b\n---\nx").len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&bytes, Path::new("x"));
    }

    #[test]
    fn any_frontmatter_is_judged(
        front in "([a-z&*!|>\\[\\]{}:,'\"#\\- \n\t\r$é]|name|description|metadata|allowed-tools|: |---\n){0,60}",
        body in "\\PC{0,40}",
    ) {
        if let Ok((document, findings)) = read(&format!("---\n{front}\n---\n{body}")) {
            let refused = findings.iter().any(|f| f.level == Level::Refused);
            prop_assert_eq!(document.description.is_none(), refused);
        }
    }
}
