//! Searches in all conversations.

use crate::support::*;
use crabtalk_domain::storage::*;
use std::sync::Arc;

fn search(words: &str) -> Search {
    Search {
        words: words.split(' ').map(str::to_owned).collect(),
        agent: None,
        sender: None,
        reach: Arc::new(|_| true),
        limit: 9,
    }
}

/// Hits as `sender: snippet`.
async fn hits(home: &Home, search: Search) -> Vec<String> {
    let found = home.store.search(search).await.expect("searches");
    let shown = |hit: Hit| format!("{}: {}", hit.key.sender, hit.snippet);
    found.hits.into_iter().map(shown).collect()
}

/// A home with one message.
async fn spoken() -> Home {
    let home = Home::new();
    let mut b = home.open("crab", "b").await.log;
    b.append(&[user("a green window")]).await.expect("appends");
    home
}

#[tokio::test]
async fn search_follows_logs_edited_between_daemons() {
    let mut home = spoken().await;
    // A user edits a log while no daemon runs.
    for word in ["blue", "brown"] {
        home.restart();
        let name = home
            .names()
            .into_iter()
            .find(|name| name.contains("_b_"))
            .expect("b");
        let text = String::from_utf8(home.read(&name)).expect("text");
        let text = text.replace("window", word).replace("blue", word);
        home.write(&name, text);
        assert_eq!(hits(&home, search(word)).await.len(), 1, "{word}");
    }
    assert_eq!(hits(&home, search("window")).await.len(), 0);
}

#[tokio::test]
async fn maintenance_indexes_logs_that_others_changed() {
    let home = spoken().await;
    while home.store.maintain().await.expect("works") {}
    let text = String::from_utf8(home.read("crab_b_1.jsonl")).expect("text");
    let added = r#"{"role":"user","content":"by an editor"}"#;
    std::fs::write(home.sessions().join("crab_b_1.jsonl"), text + added + "\n").expect("is ours");
    while home.store.maintain().await.expect("works") {}
    assert_eq!(hits(&home, search("editor")).await, ["b: by an editor"]);
}
