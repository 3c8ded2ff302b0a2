//! Tests of visibility and write access.

use super::*;
use crabtalk_domain::{Origin, Principal, TokenName};

/// Two senders and an owner: one entry of each, a shared one, a hand-written
/// one, and an archive of each conversation. A row each, a mark for who sees it.
async fn visibility(recall_scope: RecallScope) -> String {
    let world = World::with(Settings {
        recall_scope,
        ..Settings::default()
    });
    for sender in ["user", "tg:1", "tg:2"] {
        world
            .remember(sender, &format!("Entry of {sender}"), "a marmot")
            .await
            .unwrap();
        let turn = said(Role::User, "a marmot lives here", "2026-01-05T00:00:00Z");
        world.archive(sender, &[turn]);
    }
    world
        .share("user", "Shared by user", "a marmot", Some(true))
        .await
        .unwrap();
    world
        .share("tg:1", "Shared by tg:1", "a marmot", Some(true))
        .await
        .unwrap();
    for (file, shared) in [("hand", false), ("hand-shared", true)] {
        let text = format!("---\nname: {file}\nshared: {shared}\n---\na marmot");
        std::fs::write(
            world.home.path().join(format!("memory/entries/{file}.md")),
            text,
        )
        .unwrap();
    }
    world.memory.archives().begin().await;
    world.rest().await;
    let mut seen: BTreeMap<String, BTreeMap<&str, bool>> = BTreeMap::new();
    for sender in ["user", "tg:1", "tg:2"] {
        for hit in world
            .memory
            .recall(&viewer(sender), "marmots", 50)
            .await
            .hits
        {
            let what = match &hit.source {
                FoundIn::Entry { .. } => hit.title,
                FoundIn::Archive { conversation, .. } => {
                    format!("Archive of {}", conversation.sender)
                }
            };
            seen.entry(what).or_default().insert(sender, true);
        }
    }
    let mut table = String::from("| | user (owner) | tg:1 | tg:2 |\n|---|---|---|---|\n");
    for (what, by) in seen {
        let mark = |sender| if by.contains_key(sender) { "sees" } else { "-" };
        let row = format!(
            "| {what} | {} | {} | {} |\n",
            mark("user"),
            mark("tg:1"),
            mark("tg:2")
        );
        table.push_str(&row);
    }
    table
}

#[tokio::test]
async fn two_senders_and_an_owner_see_what_is_theirs() {
    assert_eq!(
        visibility(RecallScope::Conversation).await,
        "\
| | user (owner) | tg:1 | tg:2 |
|---|---|---|---|
| Archive of tg:1 | - | sees | - |
| Archive of tg:2 | - | - | sees |
| Archive of user | sees | - | - |
| Entry of tg:1 | sees | sees | - |
| Entry of tg:2 | sees | - | sees |
| Entry of user | sees | - | - |
| Shared by tg:1 | sees | sees | - |
| Shared by user | sees | sees | sees |
| hand | sees | - | - |
| hand-shared | sees | sees | sees |
"
    );
}

#[tokio::test]
async fn agent_scope_widens_archives_and_nothing_else() {
    let narrow = visibility(RecallScope::Conversation).await;
    let wide = visibility(RecallScope::Agent).await;
    for sender in ["user", "tg:1", "tg:2"] {
        assert!(
            wide.contains(&format!("| Archive of {sender} | sees | sees | sees |")),
            "{wide}"
        );
    }
    let entries = |table: &str| {
        table
            .lines()
            .filter(|l| !l.contains("Archive"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(entries(&wide), entries(&narrow));
}

/// A token is the principal for every sender that it names.
#[tokio::test]
async fn token_speaking_as_owner_sees_only_shared_entries() {
    let world = World::new();
    let token = Principal::Token(TokenName::new("laptop").unwrap());
    let client = Origin::Client {
        principal: token.clone(),
    };
    let delegated = Origin::Delegate {
        root: key("user"),
        parent: key("user"),
        run: 1,
        depth: 1,
        principal: Some(token),
    };
    for origin in [client, delegated] {
        let viewer = world.memory.viewer(&key("user"), &origin);
        assert!(!viewer.is_owner, "{origin}");
    }
    assert!(world.memory.viewer(&key("user"), &Origin::local()).is_owner);
}

#[tokio::test]
async fn a_delegated_run_sees_what_its_root_sees() {
    let world = World::new();
    world.remember("tg:1", "Mine", "a marmot").await.unwrap();
    world.remember("user", "Owner's", "a marmot").await.unwrap();
    let delegated = |root: &str| {
        let origin = crabtalk_domain::Origin::Delegate {
            root: key(root),
            parent: key(root),
            run: 1,
            depth: 1,
            principal: Some(Principal::Owner),
        };
        world.memory.viewer(&key("delegate:1"), &origin)
    };
    assert_eq!(
        world
            .memory
            .recall(&delegated("tg:1"), "marmot", 9)
            .await
            .hits
            .len(),
        1
    );
    assert_eq!(
        world
            .memory
            .recall(&delegated("user"), "marmot", 9)
            .await
            .hits
            .len(),
        2
    );
    assert!(world.titles("event:mail", "marmot").await.is_empty());
}

#[tokio::test]
async fn nobody_changes_what_belongs_to_others() {
    let world = World::new();
    world
        .share("user", "Rules", "be kind", Some(true))
        .await
        .unwrap();
    world
        .remember("user", "Secret", "the code is 1234")
        .await
        .unwrap();
    let refused = world
        .remember("tg:1", "Rules", "be rude")
        .await
        .unwrap_err();
    assert_eq!(
        refused,
        "only an owner may change the memory entry \"Rules\"; choose another name"
    );
    let forget = |sender, name: &'static str| {
        let memory = world.memory.clone();
        async move {
            memory
                .forget(&viewer(sender), name)
                .await
                .map_err(|e| e.to_string())
        }
    };
    assert_eq!(forget("tg:1", "Rules").await.unwrap_err(), refused);
    let absent =
        "there is no memory entry named \"Secret\"; recall or list entries to see the names";
    assert_eq!(forget("tg:1", "Secret").await.unwrap_err(), absent);
    // The name of a hidden entry is free, so that it does not leak.
    world.remember("tg:1", "Secret", "mine").await.unwrap();
    let secret = world.memory.entry(&viewer("user"), "Secret").await.unwrap();
    assert_eq!(secret.content, "the code is 1234");
    let own = world.memory.entry(&viewer("tg:1"), "Secret").await.unwrap();
    assert_eq!((own.content.as_str(), own.shared), ("mine", false));
    forget("tg:1", "Secret").await.unwrap();
    assert_eq!(world.titles("user", "code").await, ["Secret"]);
    let overview = world
        .memory
        .write_overview(&viewer("tg:1"), "x".into())
        .await;
    assert!(
        overview
            .unwrap_err()
            .to_string()
            .starts_with("only an owner may change MEMORY.md")
    );
}

#[tokio::test]
async fn an_owner_may_forget_what_guests_left() {
    let world = World::new();
    for sender in ["tg:1", "tg:2"] {
        world.remember(sender, "Note", "a marmot").await.unwrap();
    }
    world.remember("tg:1", "Single", "a marmot").await.unwrap();
    world
        .memory
        .forget(&viewer("user"), "Single")
        .await
        .unwrap();
    let several = world
        .memory
        .forget(&viewer("user"), "Note")
        .await
        .unwrap_err()
        .to_string();
    assert!(several.contains("tg:1, tg:2"), "{several}");
}
