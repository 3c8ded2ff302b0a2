//! Searches in all conversations.

use crate::support::*;
use crabtalk_domain::storage::*;
use crabtalk_domain::{ConversationKey, Message};
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

fn at(minute: u32, text: &str) -> Record {
    let mut message = Message::user(text);
    message.at = format!("2026-11-01T00:{minute:02}:00Z");
    Record::Message(Arc::new(message))
}

/// Conversations of `a` and `b` with three messages and a title.
async fn spoken() -> Home {
    let home = Home::new();
    let mut a = home.open("crab", "a").await.log;
    a.append(&[at(1, "the green door"), compact("a summary", 0)])
        .await
        .expect("appends");
    a.append(&[at(3, "Greener doors"), titled("Paint jobs")])
        .await
        .expect("appends");
    let mut b = home.open("crab", "b").await.log;
    b.append(&[at(2, "a green window")]).await.expect("appends");
    home
}

#[tokio::test]
async fn search_finds_all_words_newest_first() {
    let home = spoken().await;
    for (words, found) in [
        (
            "GREEN",
            vec!["a: Greener doors", "b: a green window", "a: the green door"],
        ),
        ("door green", vec!["a: Greener doors", "a: the green door"]),
        ("paint", vec!["a: Paint jobs"]),
        ("reen", vec![]),
        ("summary", vec![]),
        ("-", vec![]),
    ] {
        assert_eq!(hits(&home, search(words)).await, found, "{words}");
    }
    let hit = home
        .store
        .search(search("window"))
        .await
        .expect("searches")
        .hits
        .remove(0);
    let (index, _) = hit.message.expect("a message");
    let entries = home.store.entries(&hit.key, &[index]).await.expect("reads");
    assert_eq!(entries[0].message.content, "a green window");
}

#[tokio::test]
async fn search_is_limited_to_requested_and_visible_logs() {
    let home = spoken().await;
    let of_b = |key: &ConversationKey| key.sender.as_str() == "b";
    let only_b = vec!["b: a green window".to_owned()];
    for (asked, found) in [
        (
            Search {
                sender: Some("b".into()),
                ..search("green")
            },
            only_b.clone(),
        ),
        (
            Search {
                reach: Arc::new(of_b),
                ..search("green")
            },
            only_b,
        ),
        (
            Search {
                agent: Some("other".into()),
                ..search("green")
            },
            Vec::new(),
        ),
    ] {
        assert_eq!(hits(&home, asked).await, found);
    }
    let asked = Search {
        limit: 1,
        ..search("green")
    };
    let found = home.store.search(asked).await.expect("searches");
    assert_eq!((found.hits.len(), found.incomplete), (1, true));
    let all = home.store.search(search("green")).await.expect("searches");
    assert!(!all.incomplete);
}

#[tokio::test]
async fn search_follows_each_change_of_the_logs() {
    let mut home = spoken().await;
    assert_eq!(hits(&home, search("green")).await.len(), 3);
    let mut log = home.open("crab", "a").await.log;
    log.append(&[at(9, "green again"), titled("Brushes")])
        .await
        .expect("appends");
    assert_eq!(hits(&home, search("green")).await[0], "a: green again");
    assert_eq!(hits(&home, search("brush")).await, ["a: Brushes"]);
    assert_eq!(
        hits(&home, search("paint")).await.len(),
        0,
        "a former title"
    );
    home.store.remove(&key("crab", "b")).await.expect("removes");
    assert_eq!(hits(&home, search("window")).await.len(), 0);
    home.store
        .restore(&key("crab", "b"), None)
        .await
        .expect("restores");
    assert_eq!(hits(&home, search("window")).await.len(), 1);
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
