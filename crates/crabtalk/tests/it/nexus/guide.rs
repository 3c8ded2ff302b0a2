//! The page of the guide that sets up a team of three, followed word by word.

use super::speaker::Speaker;
use crate::rig::{CRABTALK, TestEnv, eventually, has_tools, skipped};
use std::path::Path;
use std::process::Stdio;

/// A block of code on the page.
struct Block {
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                found.push(Block {
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            None if open => {
                let block = found.last_mut().unwrap();
                block.text += line;
                block.text.push('\n');
            }
            None => {}
        }
    }
    found
}

/// A person's terminal.
struct Desk<'a> {
    env: &'a TestEnv,
    path: String,
}

impl Desk<'_> {
    fn script(&self, line: &str) -> String {
        // The editor that a person has writes a line.
        format!("export PATH='{}' EDITOR=./editor; {line}", self.path)
    }

    /// What a line says, which has to succeed.
    async fn types(&self, line: &str) -> String {
        let said = self.env.shell(&self.script(line)).await;
        let text = format!("{}{}", said.stdout, said.stderr);
        assert_eq!(said.code, Some(0), "{line}: {text}");
        text
    }

    async fn until(&self, line: &str, is: impl Fn(&str) -> bool) {
        eventually(line, async || is(&self.types(line).await).then_some(())).await;
    }
}

#[tokio::test]
async fn the_guide_sets_up_a_team_of_three() {
    let test = "the_guide_sets_up_a_team_of_three";
    let folder = Path::new(CRABTALK).parent().unwrap();
    if !has_tools(test, &["git"]) {
        return;
    }
    if !folder.join("crabtalk-nexus").is_file() {
        return skipped(test, "crabtalk-nexus is not built beside crabtalk");
    }
    let page = include_str!("../../../../../docs/guide/nexus.md");
    let speaker = Speaker::start().await;
    let env = TestEnv::new();
    env.config(&speaker.config());
    env.script(
        "editor",
        "#!/bin/sh\necho 'You are one of a team.' >> \"$1\"\n",
    );
    let _daemon = env.daemon().await;
    let path = std::env::var("PATH").unwrap();
    let desk = Desk {
        env: &env,
        path: format!("{}:{path}", folder.display()),
    };
    let mut runs = None;
    for block in blocks(page) {
        if block.language == "toml" {
            env.write(".crabtalk/config/nexus.toml", &block.text);
            continue;
        }
        for line in block.text.lines() {
            if line == "crabtalk nexus run" {
                let mut command = env.program("sh");
                command.args(["-c", &desk.script(&format!("exec {line}"))]);
                let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
                runs = Some(child.unwrap());
                let idle = |text: &str| text.matches("IDLE").count() == 3;
                eventually("a team that runs", async || {
                    let said = env.shell(&desk.script("crabtalk nexus status")).await;
                    idle(&said.stdout).then_some(())
                })
                .await;
                continue;
            }
            let words: Vec<&str> = line.split(' ').collect();
            if let ["crabtalk", "nexus", "approve" | "deny", agent, ..] = words.as_slice() {
                // It asks some time later.
                let name = agent.to_uppercase();
                let is_compression = line.contains("# the compression");
                let state = ["APPROVAL", "AWAIT-ADMIN"][usize::from(is_compression)];
                desk.until("crabtalk nexus status", |text| {
                    let mut lines = text.lines();
                    lines.any(|line| line.contains(&name) && line.contains(state))
                })
                .await;
            }
            desk.types(line).await;
        }
    }
    desk.until("crabtalk nexus tasks", |text| {
        text.lines().filter(|line| line.contains("done")).count() >= 3
    })
    .await;
    let log = async || desk.types("crabtalk nexus log -n 500").await;
    eventually("a compression", async || {
        let text = log().await;
        text.contains("identity confirmed after compression")
            .then_some(())
    })
    .await;
    let log = log().await;
    assert!(log.contains("deny [") && log.contains("allow ["), "{log}");
    assert!(runs.is_some(), "the page says how it is run");
}
