//! Configuration and agent files with anything in them.

use crabtalk_config::{AgentFile, Config};
use std::path::Path;

fn corpus(name: &str) -> String {
    format!("{}/tests/corpus/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Agent files round-trip.
#[test]
fn fuzz_agent_files() {
    crabtalk_testkit::fuzz(corpus("agents"), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let file = Path::new("ada.md");
        if let Ok((agent, _)) = AgentFile::parse(&text, file) {
            let again = AgentFile::parse(&agent.to_text(), file);
            let (again, _) = again.unwrap_or_else(|error| panic!("{}", error.with_causes()));
            assert_eq!(
                (again.settings, again.prompt),
                (agent.settings, agent.prompt)
            );
        }
        // As in a message.
        if let Ok((sent, _)) = AgentFile::of(&text, "p") {
            let (written, _) = AgentFile::parse(&sent.to_text(), file).expect("it was read");
            assert_eq!(written.settings, sent.settings);
        }
    });
}

/// A configuration is complete or an error; its JSON has no secret.
#[test]
fn fuzz_configuration() {
    crabtalk_testkit::fuzz(corpus("config"), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let env = |name: &str| (name == "KEY").then(|| "planted-secret".into());
        if let Ok((config, _)) = Config::parse(&text, Path::new("config.toml"), &env)
            && !text.contains("planted")
        {
            let shown = config.effective_json()["provider"].to_string();
            let keys: Vec<_> = config
                .provider
                .iter()
                .filter_map(|p| p.api_key.as_ref())
                .collect();
            assert!(
                keys.is_empty() || !shown.contains("\"api_key\":\"planted"),
                "{shown}"
            );
        }
    });
}
