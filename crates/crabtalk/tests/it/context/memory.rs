//! Memory entries as files and on the command line.

use super::{message, recall, say};
use crate::rig::{ModelServer, TestEnv, stream_to_end};
use crabtalk_testkit::scripted::{Script, openai};

const ENTRIES: &str = ".crabtalk/config/memory/entries";

async fn agreeing() -> ModelServer {
    ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await
}

/// The recalled block for a question.
async fn recalled(env: &TestEnv, model: &ModelServer, question: &str) -> String {
    say(env, "user", question).await;
    recall(model.requests().await.last().unwrap()).unwrap_or_default()
}

#[tokio::test]
async fn hand_edits_take_effect_while_the_daemon_runs() {
    let model = agreeing().await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    let gate = |colour: &str| {
        let text = format!("---\nname: garden gate\n---\nThe garden gate is {colour}.\n");
        env.write(&format!("{ENTRIES}/gate.md"), &text);
    };
    gate("green");
    let question = "Which colour has the garden gate?";
    let block = recalled(&env, &model, question).await;
    assert!(block.contains("gate is green"), "{block}");
    gate("red as a lobster");
    let block = recalled(&env, &model, question).await;
    assert!(
        block.contains("red as a lobster") && !block.contains("green"),
        "{block}"
    );

    // A broken entry is reported and hides no other.
    env.write(&format!("{ENTRIES}/shed.md"), "---\nname: [garden shed\n");
    let block = recalled(&env, &model, question).await;
    assert!(block.contains("red as a lobster"), "{block}");
    recalled(&env, &model, question).await;
    let said = daemon.stderr();
    let named: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("shed.md"))
        .collect();
    assert_eq!(named.len(), 1, "{said}");
    assert!(named[0].contains("skipped a memory entry"), "{said}");
    let listed = env.run(&["memory"]).await;
    assert!(listed.stderr.contains("skipped") && listed.stderr.contains("shed.md"));
    assert!(listed.ok().contains("garden gate"));
    let shed = "---\nname: garden shed\n---\nThe garden shed is empty.\n";
    env.write(&format!("{ENTRIES}/shed.md"), shed);
    let mended = env.run(&["memory"]).await;
    assert_eq!(mended.stderr, "");
    assert!(mended.ok().contains("garden shed"));

    std::fs::remove_file(env.user_home.join(format!("{ENTRIES}/gate.md"))).unwrap();
    let block = recalled(&env, &model, question).await;
    assert!(!block.contains("lobster"), "{block}");
}

#[tokio::test]
async fn entries_of_the_command_line_are_recalled() {
    let model = agreeing().await;
    let env = TestEnv::with_model(&model);
    let _daemon = env.daemon().await;
    let added = env
        .run(&[
            "memory",
            "add",
            "wifi",
            "the",
            "password",
            "is",
            "crustacean",
        ])
        .await;
    assert_eq!(added.stderr, "crabtalk: remembered wifi\n");
    let block = recalled(&env, &model, "What is the password of the wifi?").await;
    assert!(block.contains("crustacean"), "{block}");
    let found = env.run(&["memory", "recall", "password"]).await.ok();
    assert!(found.contains("wifi | memory, from user"), "{found}");

    // Names with equal slugs have separate files.
    for name in ["a b", "a-b", "a_b", "A b"] {
        env.run(&["memory", "add", name, &format!("this is {name}")])
            .await
            .ok();
    }
    for name in ["a b", "a-b", "a_b", "A b"] {
        let shown = env.run(&["memory", "show", name]).await.ok();
        assert_eq!(shown, format!("this is {name}\n"));
    }
    let huge = "x".repeat(1024 * 1024);
    let refused = env.run_with(&["memory", "add", "huge"], Some(&huge)).await;
    let refused = refused.fails(1);
    assert!(refused.contains("the limit is 262144"), "{refused}");
    let refused = env
        .run(&["memory", "add", "two\nlines", "x"])
        .await
        .fails(1);
    assert!(refused.contains("not a valid name"), "{refused}");
    env.write("notes/boat.md", "The boat has a leak below the bow.\n");
    let notes = env.user_home.join("notes").display().to_string();
    env.run(&["memory", "import", &notes]).await.ok();
    let found = env.run(&["search", "leak"]).await.ok();
    assert!(found.contains("below the bow"), "{found}");
    let stranger = env.run(&["memory", "import", &notes, "--as", "ann"]).await;
    assert!(stranger.fails(1).contains("only an owner"));
    env.run(&["memory", "rm", "wifi"]).await.ok();
    let missing = env.run(&["memory", "show", "wifi"]).await.fails(1);
    assert!(missing.contains("no memory entry named"), "{missing}");
}

#[tokio::test]
async fn disabled_memory_has_no_block_and_no_tool() {
    let model = agreeing().await;
    let env = TestEnv::with_model(&model);
    let config = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    env.config(&format!("{config}\n[memory]\nenabled = false\n"));
    env.write(
        &format!("{ENTRIES}/gate.md"),
        "---\nname: gate\n---\nThe gate is green.\n",
    );
    let _daemon = env.daemon().await;
    stream_to_end(&env, message(&env, "user", "Is the gate green?")).await;
    let request = model.requests().await.pop().unwrap().to_string();
    assert!(
        !request.contains("recall") && !request.contains("remember"),
        "{request}"
    );
}
