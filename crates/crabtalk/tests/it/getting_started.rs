//! The session on the page for newcomers, typed into a terminal as it stands there.

use crate::rig::{CRABTALK, TestEnv, Tmux, eventually, has_tools};
use std::path::Path;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/guide/getting-started.md"
);

/// The first page that anybody sees, which shows the beginning of that session.
const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// Set, the page is written anew in place of being compared.
const UPDATE: &str = "CRABTALK_UPDATE_DOCS";

/// Columns of the terminal: as many as the page shows.
const COLUMNS: usize = 100;

/// The block of the session, and where it stands on the page.
fn session(page: &str) -> (usize, usize) {
    let begin = page.find("```console\n").expect("a session") + "```console\n".len();
    let end = begin + page[begin..].find("\n```").expect("its end");
    (begin, end)
}

/// What differs from one machine and moment to the next made equal.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for c in text.trim().chars() {
        match c.is_ascii_digit() {
            true if masked.ends_with('0') => {}
            true => masked.push('0'),
            false => masked.push(c),
        }
    }
    // A time below a second, and one above; a space that fills a column.
    masked
        .replace("0.0 s", "0 s")
        .replace("0 ms", "0 s")
        .replace("now", "0 s ago")
        .replace("0 min ago", "0 s ago")
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
        .collect()
}

/// As somebody else's machine would show it.
fn told(screen: &str, env: &TestEnv) -> String {
    let mut told = screen.replace(env.user_home.to_str().unwrap(), "/home/me");
    // Which keys and servers were looked for depends on the machine.
    let (from, to) = ("because there is no key", "; `crabtalk init`");
    if let Some(begin) = told.find(from)
        && let Some(length) = told[begin..].find(to)
    {
        told.replace_range(begin..begin + length, "because ...");
    }
    told
}

#[tokio::test]
async fn the_first_five_commands_print_what_the_page_shows() {
    if !has_tools("the first five commands", &["tmux"]) {
        return;
    }
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (begin, end) = session(&page);
    let env = TestEnv::new();
    std::fs::write(env.work.join("notes.md"), "# Notes\n").unwrap();
    let folder = Path::new(CRABTALK).parent().unwrap().display();
    let shell = format!("PS1='$ ' ENV= PATH=\"{folder}:$PATH\" sh -i");
    let tmux = Tmux::sized(&env, &shell, COLUMNS, 60);
    tmux.shows("$", 1).await;
    let commands = page[begin..end]
        .lines()
        .filter_map(|l| l.strip_prefix("$ "));
    let mut count = 0;
    for command in commands {
        count += 1;
        tmux.types(command);
        if command.contains("/tool bash") {
            tmux.shows("Allow?", 1).await;
            tmux.types("y");
        }
        // The prompt behind it, at the beginning of the last line.
        eventually("the next prompt", async || {
            let screen = tmux.screen();
            let prompts = screen.lines().filter(|line| line.starts_with('$'));
            let last = screen.trim_end().lines().last()? == "$";
            (last && prompts.count() > count).then_some(())
        })
        .await;
    }
    assert_eq!(count, 5, "five commands");
    let screen = told(&tmux.screen(), &env);
    let screen = screen.trim_end().trim_end_matches('$').trim();
    env.run(&["daemon", "stop"]).await.ok();
    if std::env::var_os(UPDATE).is_some() {
        let page = format!("{}{screen}{}", &page[..begin], &page[end..]);
        return std::fs::write(PAGE, page).unwrap();
    }
    assert_eq!(masked(&page[begin..end]), masked(screen), "{screen}");
}

#[test]
fn the_first_page_shows_commands_as_the_session_does() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (begin, end) = session(&page);
    let session = masked(&page[begin..end]);
    let readme = std::fs::read_to_string(README).unwrap();
    let blocks = readme.split("```console\n").skip(1);
    let shown: Vec<_> = blocks
        .map(|block| masked(block.split("\n```").next().unwrap()))
        .collect();
    assert_eq!(shown.len(), 2, "blocks of the README");
    for block in shown {
        assert!(session.contains(&block), "{block}\nis not in\n{session}");
    }
}
