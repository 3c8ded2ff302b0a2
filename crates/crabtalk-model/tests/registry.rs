//! Models by name, and changes while streams go on.

mod support;

use crabtalk_domain::model::{Chunk, ErrorKind, Model};
use crabtalk_model::{Error, Kind, ModelConfig, Price, ProviderConfig, Registry};
use crabtalk_testkit::scripted::{
    FinishReason, Format, Part, Reply, Script, Server, answer, openai,
};
use futures_util::StreamExt;
use support::{provider, request};

fn named(name: &str, models: &[&str]) -> ProviderConfig {
    provider(name, Kind::OpenAi, "http://127.0.0.1:1", models)
}

fn registry(providers: Vec<ProviderConfig>, active: Option<&str>) -> Result<Registry, Error> {
    Registry::new(providers, active.map(str::to_owned))
}

#[test]
fn ambiguous_configuration_is_refused() {
    for (providers, active, part) in [
        (
            vec![named("a", &["m"]), named("a", &["n"])],
            None,
            "two providers named \"a\"",
        ),
        (
            vec![named("a", &["m"]), named("b", &["m"])],
            None,
            "\"a\" and \"b\"",
        ),
        (vec![named("a", &["m", "m"])], None, "\"m\" is used twice"),
        (
            vec![named("a", &["sonnet"])],
            Some("sonet"),
            "did you mean \"sonnet\"?",
        ),
        (
            vec![provider("a", Kind::OpenAi, "ftp://x", &["m"])],
            None,
            "base_url",
        ),
    ] {
        let error = registry(providers, active).err().expect(part);
        assert!(error.to_string().contains(part), "{error}");
    }
    let mut bad = named("a", &["m"]);
    bad.headers.push(("x y".into(), "planted".into()));
    let error = registry(vec![bad], None)
        .err()
        .expect("a bad header")
        .to_string();
    assert!(
        error.contains("x y") && !error.contains("planted"),
        "{error}"
    );
}

#[tokio::test]
async fn unknown_model_error_lists_models() {
    let registry = registry(vec![named("a", &["sonnet", "haiku"])], None).expect("good");
    let mut asked = request("hi");
    asked.model = "haikou".into();
    let error = registry.send(asked).await.expect_err("no such model");
    assert_eq!(error.kind, ErrorKind::UnknownModel);
    assert_eq!(
        error.message,
        "the model \"haikou\" is unknown; known models: \"sonnet\", \"haiku\"; did you mean \"haiku\"?"
    );
}

#[tokio::test]
async fn empty_registry_error_names_the_remedy() {
    let registry = registry(Vec::new(), None).expect("nothing is not wrong");
    assert_eq!(registry.active_model(), "");
    let error = registry.send(request("hi")).await.expect_err("no model");
    assert_eq!(error.kind, ErrorKind::NotConfigured);
    assert!(error.message.contains("[provider.NAME]"), "{error}");
}

#[test]
fn first_model_is_active_by_default() {
    let registry = registry(vec![named("a", &["x", "y"]), named("b", &["z"])], None).expect("good");
    assert_eq!(registry.active_model(), "x");
    let both = || vec![named("a", &["x", "y"]), named("b", &["z"])];
    let active = |name: &str| Some(name.to_owned());
    registry.replace(both(), active("z")).expect("it exists");
    assert_eq!(registry.active_model(), "z");
    assert!(registry.replace(both(), active("gone")).is_err());
    assert_eq!(
        registry.active_model(),
        "z",
        "a failed change changes nothing"
    );
    let others = || vec![named("a", &["x", "y"]), named("c", &["w"])];
    registry.replace(others(), None).expect("new names");
    let twice = [others(), vec![named("d", &["w"])]].concat();
    assert!(registry.replace(twice, None).is_err());
    assert_eq!(registry.active_model(), "x");
    let names: Vec<_> = registry
        .models()
        .into_iter()
        .map(|m| (m.name, m.active))
        .collect();
    let want = [("x", true), ("y", false), ("w", false)];
    assert_eq!(names, want.map(|(name, active)| (name.to_owned(), active)));
}

#[test]
fn context_limits_are_configured_or_known() {
    let mut config = named("a", &[]);
    config.models = vec![
        ModelConfig::new("gpt-4o-mini"),
        ModelConfig {
            context: Some(5),
            ..ModelConfig::new("small")
        },
        ModelConfig::new("mystery"),
    ];
    let registry = registry(vec![config], None).expect("good");
    for (model, limit) in [
        ("gpt-4o-mini", Some(128_000)),
        ("small", Some(5)),
        ("mystery", None),
        ("", Some(128_000)),
        ("gone", None),
    ] {
        assert_eq!(registry.context_limit(model), limit, "{model}");
    }
}

#[test]
fn price_is_configured_or_known() {
    let mut known = named("a", &[]);
    known.base_url = None;
    known.models = vec![
        ModelConfig::new("gpt-4o-mini"),
        ModelConfig {
            id: "gpt-4o".into(),
            price: Some(Price::new(5.0, 20.0)),
            ..ModelConfig::new("mine")
        },
        ModelConfig::new("mystery"),
    ];
    let mut local = provider("b", Kind::OpenAi, "http://127.0.0.1:1", &["local"]);
    local.models[0].id = "gpt-4o".into();
    let registry = registry(vec![known, local], None).expect("good");
    let input = |model: &str| {
        registry
            .price(model)
            .map(|price| (price.input, price.cached))
    };
    assert_eq!(input("gpt-4o-mini"), Some((0.15, Some(0.075))));
    // The rebate for what was cached is the listed one.
    assert_eq!(input("mine"), Some((5.0, Some(2.5))));
    assert_eq!(input("mystery"), None);
    assert_eq!(input("local"), None);
    assert_eq!(input("gone"), None);
    let about: Vec<_> = registry
        .models()
        .into_iter()
        .map(|model| {
            (
                model.name,
                model.price.is_some(),
                model.price_is_approximate,
            )
        })
        .collect();
    let want = [
        ("gpt-4o-mini", true, true),
        ("mine", true, false),
        ("mystery", false, false),
        ("local", false, false),
    ];
    assert_eq!(
        about,
        want.map(|(name, has, about)| (name.to_owned(), has, about))
    );
}

/// An answer that waits in its middle.
fn halting(format: Format) -> Reply {
    let parts = [Part::text(&["before "]), Part::text(&["after"])];
    let whole = answer::answer(format, &parts, FinishReason::Done);
    let first = answer::answer(format, &parts[..1], FinishReason::Done);
    // Both begin alike, up to where the second text differs from the end.
    let alike = whole.actions.iter().zip(&first.actions);
    let at = alike.take_while(|(a, b)| a == b).count();
    whole.held_after(at)
}

#[tokio::test]
async fn changes_disturb_no_stream() {
    const STREAMS: usize = 52;
    let kinds = [
        (Kind::OpenAi, Format::OpenAi),
        (Kind::Anthropic, Format::Anthropic),
        (Kind::Google, Format::Google),
        (Kind::Bedrock, Format::Bedrock),
    ];
    let mut servers = Vec::new();
    let mut providers = Vec::new();
    for (kind, format) in kinds {
        let script = Script::new(format, [halting(format)]).repeating();
        let server = Server::start(script).await;
        providers.push(provider(
            kind.as_str(),
            kind,
            &server.origin(),
            &[kind.as_str()],
        ));
        servers.push(server);
    }
    let registry = registry(providers, None).expect("good");
    let mut streams: Vec<_> = (0..STREAMS)
        .map(|at| {
            let mut asked = request("hi");
            asked.model = kinds[at % kinds.len()].0.as_str().into();
            registry.stream(asked)
        })
        .collect();
    for stream in &mut streams {
        assert!(matches!(
            stream.next().await,
            Some(Ok(Chunk::Answering { .. }))
        ));
    }
    for server in &servers {
        server.until(|p| p.stalled == STREAMS / kinds.len()).await;
    }
    registry
        .replace(vec![ProviderConfig::offline()], None)
        .expect("good");
    assert_eq!(registry.active_model(), "offline");
    for server in &servers {
        (0..STREAMS / kinds.len()).for_each(|_| server.release());
    }
    for mut stream in streams {
        let mut said = String::new();
        while let Some(chunk) = stream.next().await {
            if let Chunk::Text(text) = chunk.expect("undisturbed") {
                said.push_str(&text);
            }
        }
        assert_eq!(said, "before after");
    }
    let answer = registry
        .send(request("hi"))
        .await
        .expect("the offline model");
    assert_eq!(
        (answer.provider.as_str(), answer.model.as_str()),
        ("offline", "offline")
    );
}

#[tokio::test]
async fn unchanged_provider_keeps_its_connections() {
    let server = Server::start(Script::openai([openai::text("a"), openai::text("b")])).await;
    let config = provider("a", Kind::OpenAi, &server.url(), &["m"]);
    let registry = registry(vec![config.clone()], None).expect("good");
    registry.send(request("hi")).await.expect("an answer");
    registry
        .replace(vec![named("b", &["n"]), config], Some("m".into()))
        .expect("good");
    registry.send(request("hi")).await.expect("an answer");
    assert_eq!(server.progress().connections, 1);
}

/// Announced models get one connection and no request. The reuse of the connection is tested at the HTTP client.
#[tokio::test]
async fn expected_model_is_connected_without_a_request() {
    let server = Server::start(Script::new(Format::OpenAi, [openai::text("hello")])).await;
    let keyless = ProviderConfig {
        key_problem: Some("no key".into()),
        ..provider("keyless", Kind::OpenAi, &server.url(), &["other"])
    };
    let offline = provider("offline", Kind::Offline, "", &["demo"]);
    let near = provider("near", Kind::OpenAi, &server.url(), &["model"]);
    let registry = registry(vec![near, keyless, offline], Some("model")).expect("good");
    for unanswered in ["other", "demo", "unknown"] {
        registry.expect(unanswered);
    }
    // The active model, and the same by name.
    registry.expect("");
    registry.expect("model");
    server.until(|progress| progress.connections == 1).await;
    assert!(server.requests().is_empty(), "{:?}", server.requests());

    let response = registry.send(request("hi")).await.expect("an answer");
    assert_eq!(response.content, "hello");
}
