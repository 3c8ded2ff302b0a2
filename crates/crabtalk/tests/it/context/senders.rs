//! Who sees what (MEM-2), as a table that `docs/memory.md` shows.

use super::{say, summarising, told};
use crate::rig::{ModelServer, TestEnv};
use crabtalk_proto::{
    Client, ClientError, CompactMsg, ForgetMsg, ListMemoryMsg, ReloadMsg, RememberMsg, SearchMsg,
};
use crabtalk_testkit::scripted::openai;
use std::fs;
use std::path::Path;

/// Those who look: the owner, and two that are none.
const VIEWERS: [&str; 3] = ["user", "ann", "bob"];

/// Writes the table into the document instead of comparing it.
const UPDATE: &str = "CRABTALK_UPDATE_DOCS";

const BEGIN: &str = "<!-- who sees what: written by the test of that name -->\n";
const END: &str = "<!-- end -->\n";

/// A word that stands in one place alone, and how the table calls that place.
const ENTRIES: [(&str, &str); 6] = [
    ("axolotl", "an entry that the owner caused"),
    ("capybara", "the same, with `shared: true`"),
    ("narwhal", "an entry that a person wrote as a file"),
    ("okapi", "the same, with `shared: true`"),
    ("pangolin", "an entry that ann caused"),
    ("wombat", "an entry that bob caused"),
];

fn entry(sender: &str, word: &str, shared: Option<bool>) -> RememberMsg {
    RememberMsg {
        sender: sender.into(),
        name: format!("the {word}"),
        content: format!("There is one {word} in the garden."),
        shared,
        ..RememberMsg::default()
    }
}

async fn remember(env: &TestEnv, entry: RememberMsg) -> Result<(), ClientError> {
    env.connect().await.remember(entry).await
}

/// Whether a search of each viewer finds a word.
async fn found(env: &TestEnv, word: &str) -> [bool; 3] {
    let mut found = [false; 3];
    for (at, viewer) in VIEWERS.into_iter().enumerate() {
        let request = SearchMsg {
            query: word.into(),
            sender: viewer.into(),
            ..SearchMsg::default()
        };
        let hits = env.connect().await.search(request).await.unwrap().hits;
        found[at] = hits.iter().any(|hit| hit.snippet.contains(word));
    }
    found
}

/// Whether each viewer's list has the entry of a word.
async fn listed(env: &TestEnv, word: &str) -> [bool; 3] {
    let mut listed = [false; 3];
    for (at, viewer) in VIEWERS.into_iter().enumerate() {
        let request = ListMemoryMsg {
            sender: viewer.into(),
            ..ListMemoryMsg::default()
        };
        let list = env.connect().await.list_memory(request).await.unwrap();
        listed[at] = list.entries.iter().any(|entry| entry.name.contains(word));
    }
    listed
}

async fn fill(env: &TestEnv) {
    for (word, front) in [("narwhal", ""), ("okapi", "shared: true\n")] {
        let text = format!("---\nname: the {word}\n{front}---\nThere is one {word} too.\n");
        env.write(&format!(".crabtalk/config/memory/entries/{word}.md"), &text);
    }
    let written = [
        entry("user", "axolotl", None),
        entry("user", "capybara", Some(true)),
        entry("ann", "pangolin", None),
        entry("bob", "wombat", None),
    ];
    for entry in written {
        remember(env, entry).await.unwrap();
    }
}

/// The table's rows, as found out from a daemon.
async fn rows(env: &TestEnv, model: &ModelServer) -> Vec<(String, [bool; 3])> {
    let mut rows = Vec::new();
    for (word, called) in ENTRIES {
        let seen = found(env, word).await;
        assert_eq!(listed(env, word).await, seen, "{called}");
        rows.push((called.to_owned(), seen));
    }
    env.write(".crabtalk/config/memory/MEMORY.md", "We keep one quokka.\n");
    let mut carried = [false; 3];
    for (at, viewer) in VIEWERS.into_iter().enumerate() {
        say(
            env,
            viewer,
            &format!("I am {viewer} and I keep a secret tapir."),
        )
        .await;
        carried[at] = told(model.requests().await.last().unwrap()).contains("quokka");
    }
    rows.push(("`MEMORY.md`".to_owned(), carried));
    let compact = CompactMsg {
        sender: "ann".into(),
        ..CompactMsg::default()
    };
    env.connect().await.compact(compact).await.unwrap();
    rows.push((
        "what ann said, archived".to_owned(),
        found(env, "tapir").await,
    ));
    let config = fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    env.config(&format!("{config}\n[memory]\nrecall_scope = \"agent\"\n"));
    env.connect().await.reload(ReloadMsg {}).await.unwrap();
    let called = "the same, with `recall_scope = \"agent\"`".to_owned();
    rows.push((called, found(env, "tapir").await));
    rows
}

fn table(rows: &[(String, [bool; 3])]) -> String {
    let mut table = "| what | user, an owner | ann | bob |\n|---|---|---|---|\n".to_owned();
    for (what, seen) in rows {
        let cell = |seen: &bool| if *seen { "sees it" } else { "" };
        let cells: Vec<&str> = seen.iter().map(cell).collect();
        table.push_str(&format!("| {what} | {} |\n", cells.join(" | ")));
    }
    table
}

#[tokio::test]
async fn who_sees_what() {
    let replies = VIEWERS.map(|_| openai::text("Noted."));
    let model = ModelServer::start(summarising(replies, "Ann was here.")).await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    fill(&env).await;
    let table = table(&rows(&env, &model).await);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/memory.md");
    let document = fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        shown, table,
        "run this test with {UPDATE}=1 and look at what changed"
    );
}

#[tokio::test]
async fn nobody_changes_what_is_not_theirs() {
    let env = TestEnv::new();
    env.config("# nothing\n");
    let _daemon = env.daemon().await;
    fill(&env).await;
    let forbidden = |answer: Result<(), ClientError>| {
        assert_eq!(
            answer.as_ref().err().and_then(ClientError::code),
            Some(403),
            "{answer:?}"
        );
    };
    forbidden(remember(&env, entry("ann", "capybara", None)).await);
    forbidden(remember(&env, entry("ann", "tapir", Some(true))).await);
    forbidden(remember(&env, entry("cron:1", "tapir", None)).await);
    let forget = async |sender: &str, word: &str| {
        let request = ForgetMsg {
            sender: sender.into(),
            name: format!("the {word}"),
            ..ForgetMsg::default()
        };
        env.connect().await.forget(request).await
    };
    forbidden(forget("ann", "capybara").await);
    // What one does not see is not there.
    for word in ["axolotl", "wombat"] {
        let answer = forget("ann", word).await.unwrap_err();
        assert_eq!(answer.code(), Some(404), "{word}");
    }
    forget("user", "pangolin").await.unwrap();
    forget("bob", "wombat").await.unwrap();
    assert_eq!(listed(&env, "pangolin").await, [false; 3]);
    assert_eq!(listed(&env, "capybara").await, [true; 3]);
}
