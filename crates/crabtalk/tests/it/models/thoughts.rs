//! Answers of thoughts alone (CONV-5).

use super::say;
use crate::rig::{ModelServer, TestEnv, chunks, end_of, entries, stream_to_end};
use crabtalk_testkit::scripted::answer::answer;
use crabtalk_testkit::scripted::{FinishReason, Format, Part, Script};

/// The server refuses what the provider would, for instance a turn that ends
/// with a thought.
#[tokio::test]
async fn a_conversation_goes_on_behind_an_answer_of_thoughts_alone() {
    let cases = [
        (Format::OpenAi, "openai"),
        (Format::Anthropic, "anthropic"),
        (Format::Google, "google"),
    ];
    for (format, kind) in cases {
        let thought = answer(
            format,
            &[Part::thinking("hm, well", "proof==")],
            FinishReason::Done,
        );
        let said = |text: &str| answer(format, &[Part::text(&[text])], FinishReason::Done);
        let replies = [
            thought,
            said("first"),
            said("A summary of it."),
            said("last"),
        ];
        let server = ModelServer::start(Script::new(format, replies)).await;
        let env = TestEnv::with_model(&server);
        let file = env.home.join("config/config.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        env.config(&text.replace("\"openai\"", &format!("{kind:?}")));
        env.agent("crab", "thinking: true");
        let daemon = env.daemon().await;
        let events = stream_to_end(&env, say("crab", "user", "think")).await;
        let end = end_of(&events);
        assert_eq!(end.code, 502, "{kind}: {events:?}");
        assert!(
            end.error.contains("gave no answer"),
            "{kind}: {}",
            end.error
        );
        let events = stream_to_end(&env, say("crab", "user", "and?")).await;
        assert_eq!(chunks(&events), "first", "{kind}: {events:?}");
        env.run(&["compact", "--as", "user"]).await.ok();
        daemon.kill().await;

        // It is read from a log as well.
        let _daemon = env.daemon().await;
        let events = stream_to_end(&env, say("crab", "user", "once more")).await;
        assert_eq!(chunks(&events), "last", "{kind}: {events:?}");
        assert!(!entries(&env, "crab", "user").await.is_empty());
        server.requests().await;
    }
}
