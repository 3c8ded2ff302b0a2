//! `--json` prints only JSON lines for every command, and a closed pipe is silent.

use crate::args::Cli;
use crate::error::Error;
use crate::screen::Screen;
use crate::tests::{At, Fake};
use clap::CommandFactory;
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

/// A command line for each command; `DIR` is an empty folder with a file `file`.
const LINES: &[&str] = &[
    "agents list",
    "agents show crab",
    "agents new other --file DIR/file",
    "agents edit crab --file DIR/file",
    "agents rm crab",
    "approvals list",
    "approvals rm 1",
    "approve --yes",
    "archives",
    "archives show 1",
    "ask --no-stdin hello",
    "asks",
    "attach",
    "audit list",
    "audit verify",
    "audit new-chain",
    "completions bash",
    "compact",
    "components",
    "config get",
    "config set model x",
    "config unset model",
    "config edit --file DIR/file",
    "config path",
    "conversations",
    "conversations title x",
    "conversations folder DIR",
    "conversations search x",
    "conversations rm",
    "conversations trash",
    "conversations restore",
    "cron list",
    "cron add @daily x",
    "cron show 1",
    "cron edit 1 x",
    "cron rm 1",
    "cron runs",
    "cron run 1",
    "cron pause 1",
    "cron resume 1",
    "cron test @daily",
    "daemon status",
    "daemon reload",
    "daemon logs",
    "daemon install --dry-run",
    "daemon uninstall --dry-run",
    "deny",
    "diff",
    "doctor --offline",
    "events",
    "export",
    "history",
    "kill",
    "man",
    "man --dir DIR/man",
    "mcps list",
    "mcps add x --url http://localhost",
    "mcps rm x",
    "mcps test x",
    "mcps login x --no-browser",
    "mcps logout x",
    "mcps enable x",
    "mcps disable x",
    "mcps import --yes DIR/file",
    "memory list",
    "memory show n",
    "memory recall x",
    "memory add n text --no-stdin",
    "memory rm n",
    "memory import DIR",
    "models list",
    "models use big",
    "models test big",
    "new",
    "providers list",
    "providers show main",
    "providers set x --file DIR/file",
    "providers rm main",
    "providers enable main",
    "providers disable main",
    "publish a:b --no-stdin",
    "remote list",
    "remote add x tcp://localhost:1 --token-file DIR/file",
    "remote rm x",
    "reply yes",
    "search x",
    "skills list",
    "skills show x",
    "skills enable x",
    "skills disable x",
    "skills check DIR",
    "skills import DIR",
    "stats",
    "steer x",
    "subscriptions list",
    "subscriptions add a:b",
    "subscriptions rm 1",
    "tokens list",
    "tokens add x",
    "tokens rm x",
    "top -n 1",
    "trust list",
    "trust add DIR",
    "trust rm DIR",
    "undo",
];

/// Commands that start, stop or replace files and processes; end-to-end tests cover them.
const ELSEWHERE: &[&str] = &[
    "backup",
    "chat",
    "daemon restart",
    "daemon run",
    "daemon start",
    "daemon stop",
    "init",
    "restore",
    "resume",
];

fn leaves(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
    for below in command
        .get_subcommands()
        .filter(|it| it.get_name() != "help")
    {
        let path = format!("{path} {}", below.get_name());
        let path = path.trim().to_owned();
        match below.has_subcommands() {
            true => leaves(below, &path, found),
            false => drop(found.insert(path)),
        }
    }
}

#[test]
fn table_has_all_commands() {
    let mut root = Cli::command();
    root.build();
    let mut all = BTreeSet::new();
    leaves(&root, "", &mut all);
    let begins = |name: &str, line: &&&str| {
        line.split(' ')
            .take(name.split(' ').count())
            .eq(name.split(' '))
    };
    let missing = |name: &&String| {
        !LINES
            .iter()
            .chain(ELSEWHERE)
            .any(|line| begins(name, &line))
    };
    let missing: Vec<_> = all.iter().filter(missing).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}

/// A command line, with a daemon that ends the requested run.
async fn at(line: &str, option: &str) -> (Fake, tempfile::TempDir, At) {
    let fake = Fake::start().await;
    fake.send(crabtalk_proto::stream_event::Event::End(Default::default()))
        .await;
    let folder = tempfile::tempdir().unwrap();
    let text = "---\nname: x\ndescription: x\n---\ntext\n";
    std::fs::write(folder.path().join("file"), text).unwrap();
    let words = line.replace("DIR", folder.path().to_str().unwrap());
    let at = fake.at(&format!("{words} {option}"));
    std::fs::create_dir_all(at.context.home.logs_dir()).unwrap();
    std::fs::write(at.context.home.log_file(), "one\ntwo\n").unwrap();
    (fake, folder, at)
}

/// Many commands are refused here, which is fine.
async fn outcome(line: &str, at: &mut At) -> Result<(), Error> {
    let ended = tokio::time::timeout(Duration::from_secs(20), at.run()).await;
    ended.unwrap_or_else(|_| panic!("{line} did not end"))
}

#[tokio::test]
async fn json_option_prints_only_json_lines() {
    for line in LINES {
        let (_fake, _folder, mut at) = at(line, "--json").await;
        // `outcome` asserts that the command ends.
        let _ = outcome(line, &mut at).await;
        let out = at.out.text();
        let is_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        assert!(out.lines().all(is_json), "{line} prints {out:?}");
    }
}

/// A pipe without a reader.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn closed_pipe_is_no_error() {
    for line in LINES {
        let (_fake, _folder, mut at) = at(line, "").await;
        at.context.console.screen = Screen::test(Closed, at.err.clone(), false);
        let said = outcome(line, &mut at).await.err().map(|e| e.to_string());
        let said = format!("{}{}", said.unwrap_or_default(), at.err.text());
        assert!(!said.contains("cannot write the answer"), "{line}: {said}");
        assert!(
            !said.to_lowercase().contains("broken pipe"),
            "{line}: {said}"
        );
    }
}
