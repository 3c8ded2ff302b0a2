//! Answers, tool calls and compaction with a real model server.

use crate::rig::{LlamaCpp, TestEnv};

/// The model's answer. If the last character of its input is `#`, it calls `read` with
/// `notes.txt` instead.
const SAID: &str = "The crab walks sideways.\n";

/// Room for a few questions of [`LONG`], the system prompt and a tool; every
/// byte is a token.
const CONTEXT: u32 = 8_192;
const LONG: usize = 1_000;

#[tokio::test]
async fn llama_cpp_answers_calls_tools_and_outgrows_its_context() {
    let name = "llama_cpp_answers_calls_tools_and_outgrows_its_context";
    let env = TestEnv::new();
    let Some(server) = LlamaCpp::start(name, env.root(), CONTEXT).await else {
        return;
    };
    env.config(&format!(
        "model = \"crab\"\n[provider.local]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         models = [{{ name = \"crab\", context = {CONTEXT} }}]\n",
        server.url()
    ));
    env.agent("crab", "tools: [read]");
    env.write("work/notes.txt", "nothing of note");
    let daemon = env.daemon().await;
    assert_eq!(env.run(&["ask", "how do crabs walk?"]).await.ok(), SAID);

    let asked = env.run(&["ask", "look into the notes #"]).await;
    assert!(asked.stderr.contains("> read notes.txt"), "{asked:?}");
    assert!(asked.stderr.contains("< read "), "{asked:?}");
    assert_eq!(asked.ok(), SAID);
    let history = env.run(&["history"]).await.ok();
    assert!(history.contains("nothing of note"), "{history}");

    let long = format!("{}?", "x".repeat(LONG));
    let mut compacted = 0;
    for _ in 0..10 {
        let asked = env.run(&["ask", &long]).await;
        compacted += asked.stderr.matches("compacted ").count();
        assert!(asked.ok().starts_with(SAID));
    }
    assert!(compacted >= 2, "{compacted}\n{}", daemon.stderr());
    let archives = env.run(&["archives"]).await.ok();
    assert!(archives.lines().count() > 2, "{archives}");
}
