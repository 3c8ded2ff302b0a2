use super::output;
use crate::error::Error;
use crate::tests::Fake;
use crabtalk_proto::{HistoryEntry, SkillInfo, SkillTrust, SourceKind, Status};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Writes a skill; returns its folder.
fn skill(below: &Path, name: &str, front: &str) -> String {
    let folder = below.join(name);
    fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n{front}---\nDo it.\n");
    fs::write(folder.join("SKILL.md"), text).unwrap();
    folder.canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn archives_are_listed_and_read_page_by_page() {
    let fake = Fake::start().await;
    assert_eq!(
        output(&fake, "archives").await,
        "N  ARCHIVED    MESSAGES  TITLE\n1  2026-11-20  3         Moving\n"
    );
    let entry = |index: u64| HistoryEntry {
        index,
        role: "user".into(),
        content: format!("word {index}"),
        ..HistoryEntry::default()
    };
    *fake.script.history.lock().unwrap() = (1..=3).map(entry).collect();
    assert_eq!(
        output(&fake, "archives show 1").await,
        "archive 1 of 2026-11-20, 3 messages: Moving\n\
         user> word 1\nuser> word 2\nuser> word 3\n--- summarised as:\nWe moved.\n"
    );
    let lines = output(&fake, "archives show 1 -n 2 --json").await;
    let lines: Vec<Value> = lines.lines().map(json).collect();
    assert_eq!(lines[0]["message_count"], 3);
    assert_eq!((&lines[1]["index"], lines.len()), (&2.into(), 3));
}

#[tokio::test]
async fn search_and_recall_show_where_and_when() {
    let fake = Fake::start().await;
    for words in [
        "search the new house -n 3",
        "memory recall the new house -n 3",
    ] {
        assert_eq!(
            output(&fake, words).await,
            "Moving | archive 1 | 2026-11-20\n    the new house of 3\n    <U+001B>[2Jx\n"
        );
    }
    let mut unfinished = fake.at("search unfinished");
    unfinished.run().await.unwrap();
    let said = unfinished.err.text();
    assert!(said.contains("some archives were not searched"), "{said}");
    let hit = json(&output(&fake, "search x --json").await);
    assert_eq!(
        (&hit["source"], &hit["score"]),
        (&"archive 1".into(), &0.5.into())
    );
}

#[tokio::test]
async fn memory_list_reads_all_pages_and_warns() {
    let fake = Fake::start().await;
    let mut at = fake.at("memory");
    at.run().await.unwrap();
    assert_eq!(
        at.out.text(),
        "NAME  SENDER  SHARED  UPDATED     DESCRIPTION\n\
         a     user            2026-11-20  about a\n\
         b     user    yes     2026-11-20  about b\n\
         c     user            2026-11-20  about c\n"
    );
    assert_eq!(at.err.text(), "crabtalk: skipped: x.md is broken\n");
    let lines = output(&fake, "memory list --json").await;
    assert_eq!(
        lines
            .lines()
            .map(json)
            .filter(|e| e["shared"] == true)
            .count(),
        1
    );
    assert_eq!(
        output(&fake, "memory show the name").await,
        "about it\n\nwhat it says\n"
    );
    let entry = json(&output(&fake, "memory show x --json").await);
    assert_eq!(entry["content"], "what it says\n");
}

#[tokio::test]
async fn memory_is_written_forgotten_and_imported() {
    let mut fake = Fake::start().await;
    for (words, told) in [
        (
            "memory add k is under the mat --no-stdin --as ann",
            r#"remember "ann" "k" "is under the mat" "" None"#,
        ),
        (
            "memory add k x --no-stdin --shared --description keys",
            r#"remember "" "k" "x" "keys" Some(true)"#,
        ),
        (
            "memory add k x --no-stdin --private",
            r#"remember "" "k" "x" "" Some(false)"#,
        ),
        ("memory rm the key", r#"forget "the key""#),
    ] {
        output(&fake, words).await;
        assert_eq!(fake.next_told().await, told);
    }
    assert!(matches!(
        fake.at("memory add k --no-stdin").run().await,
        Err(Error::Usage(_))
    ));
    let refusal = Err(Status::forbidden("it is not yours"));
    fake.script.replies.lock().unwrap().push_back(refusal);
    match fake.at("memory rm k").run().await {
        Err(Error::Refused { code: 403, message }) => assert_eq!(message, "it is not yours"),
        other => panic!("{other:?}"),
    }
    let notes = tempfile::tempdir().unwrap();
    let notes = notes.path().canonicalize().unwrap();
    let mut at = fake.at(&format!("memory import {}", notes.display()));
    at.run().await.unwrap();
    assert_eq!(at.out.text(), format!("n from {}/n.md\n", notes.display()));
    assert_eq!(
        at.err.text(),
        "crabtalk: e.md is empty\ncrabtalk: 1 imported, 1 skipped\n"
    );
    let gone = fake.at("memory import /nowhere/at/all").run().await;
    assert!(matches!(gone, Err(Error::Usage(_))));
}

#[tokio::test]
async fn skills_are_listed_shown_checked_and_imported() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let good = skill(folder.path(), "good", "allowed-tools: Bash(ls:*)\n");
    *fake.script.skills.lock().unwrap() = vec![SkillInfo {
        name: "good".into(),
        enabled: true,
        source: good.clone(),
        source_kind: SourceKind::Local.into(),
        trust: SkillTrust::None.into(),
    }];
    let listed = output(&fake, "skills").await;
    assert!(listed.contains("good  on     installed  no"), "{listed}");
    let shown = json(&output(&fake, "skills show GOOD --json").await);
    assert_eq!(shown["allowed_tools"][0], "Bash(ls:*)");
    assert_eq!(
        (&shown["trusted"], &shown["body"]),
        (&"no".into(), &"Do it.".into())
    );
    assert!(
        output(&fake, "skills show good")
            .await
            .contains("Does good.")
    );
    assert!(matches!(
        fake.at("skills show bad").run().await,
        Err(Error::Failed(_))
    ));

    output(&fake, &format!("skills check {good}")).await;
    let wrong = skill(folder.path(), "wrong", "");
    std::os::unix::fs::symlink("/etc/passwd", format!("{wrong}/secret")).unwrap();
    let mut check = fake.at(&format!("skills check {}", folder.path().display()));
    match check.run().await {
        Err(Error::Failed(message)) => assert_eq!(message, "1 to fix in 2 skills"),
        other => panic!("{other:?}"),
    }
    assert!(
        check.out.text().contains("wrong/secret"),
        "{}",
        check.out.text()
    );

    let mut import = fake.at(&format!("skills import {}", folder.path().display()));
    import.run().await.unwrap();
    let copy = import.context.home.skills_dir().join("good/SKILL.md");
    assert!(copy.is_file());
    assert!(import.out.text().starts_with("good from "));
    assert!(
        import.err.text().contains("1 copied, 1 skipped"),
        "{}",
        import.err.text()
    );
    let again = output(&fake, &format!("skills import {good} --json")).await;
    let again = json(&again);
    assert_eq!(again["copied"], Value::Array(Vec::new()));
    assert!(
        again["skipped"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("good")
    );
    let replaced = output(&fake, &format!("skills import {good} --replace --json")).await;
    assert_eq!(json(&replaced)["copied"][0]["replaced"], true);
}

#[tokio::test]
async fn trust_covers_folders_and_skill_versions() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let path = path.to_str().unwrap();
    let one = skill(folder.path(), "one", "");
    let mut nothing = fake.at("trust");
    nothing.run().await.unwrap();
    assert!(nothing.err.text().contains("nothing is trusted"));

    output(&fake, &format!("trust add {path}")).await;
    let mut add = fake.at(&format!("trust add {one}"));
    add.run().await.unwrap();
    assert!(
        add.err.text().contains("only skills in config/skills"),
        "{}",
        add.err.text()
    );
    let list = async || -> Vec<(String, bool)> {
        let text = output(&fake, "trust list --json").await;
        let line = |line| {
            let value = json(line);
            (
                value["kind"].as_str().unwrap().to_owned(),
                value["holds"] == true,
            )
        };
        text.lines().map(line).collect()
    };
    assert_eq!(
        list().await,
        [("folder".into(), true), ("skill".into(), true)]
    );
    fs::write(format!("{one}/extra"), "x").unwrap();
    assert_eq!(
        list().await,
        [("folder".into(), true), ("skill".into(), false)]
    );
    let table = output(&fake, "trust").await;
    assert!(
        table.contains("changed since: not trusted") && table.contains("cli"),
        "{table}"
    );

    output(&fake, &format!("trust rm {path}")).await;
    output(&fake, &format!("trust rm {one}")).await;
    assert_eq!(list().await, []);
    match fake.at(&format!("trust rm {one}")).run().await {
        Err(Error::Failed(message)) => assert!(message.contains("is not trusted"), "{message}"),
        other => panic!("{other:?}"),
    }
}
