//! Connecting to the provider while a message is typed (MODEL-8).

use crate::rig::{IDLE, TestEnv, Tmux, has_tools, within};
use crabtalk_proto::{Client, ClientError, ExpectMessageMsg};
use crabtalk_testkit::scripted::{Script, Server, openai};
use std::time::{Duration, Instant};

/// An unused connection is closed when it is thirty seconds old. A machine that stands
/// still for so long shows nothing, and is asked again.
const SURELY_KEPT: Duration = Duration::from_secs(20);

/// How often.
const TRIES: usize = 5;

async fn server(answer: &str) -> Server {
    Server::start(Script::openai([openai::text(answer)])).await
}

fn config(top: &str, servers: &[(&str, &Server)]) -> String {
    let providers = servers.iter().map(|(name, server)| {
        format!(
            "[provider.{name}]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key = \"sk-test\"\n\
             models = [\"{name}\"]\n",
            server.url()
        )
    });
    let providers: String = providers.collect();
    format!("model = \"{}\"\n{top}\n{providers}", servers[0].0)
}

async fn expect(env: &TestEnv, agent: &str, model: &str) -> Result<(), ClientError> {
    let message = ExpectMessageMsg {
        agent: agent.into(),
        model: model.into(),
        ..ExpectMessageMsg::default()
    };
    env.connect().await.expect_message(message).await
}

async fn connections(server: &Server, count: usize) {
    within("a connection", server.until(|p| p.connections == count)).await;
}

#[tokio::test]
async fn typing_connects_before_the_message_is_sent() {
    if !has_tools("what_is_typed_connects_and_is_sent", &["tmux"]) {
        return;
    }
    for _ in 0..TRIES {
        let model = server("Good day to you.").await;
        let env = TestEnv::new();
        env.config(&config("", &[("scripted", &model)]));
        let _daemon = env.daemon().await;
        let terminal = Tmux::open(&env, "\"$CRABTALK\"");
        terminal.shows(IDLE, 1).await;
        // Commands do not announce a message.
        terminal.types("/title A good day");
        terminal.types("!echo mine");
        terminal.shows("mine", 2).await;
        assert_eq!(model.progress().connections, 0);

        let began = Instant::now();
        terminal.types_half("g");
        connections(&model, 1).await;
        assert_eq!(model.progress().requests, 0, "nothing is asked");
        terminal.types("ood day");
        terminal.shows("Good day to you.", 1).await;
        if began.elapsed() > SURELY_KEPT {
            continue;
        }
        let progress = model.progress();
        assert_eq!(progress.requests, 1);
        assert!(progress.connections <= 2, "{progress:?}");
        return;
    }
    panic!("this machine takes longer for a message than a connection is kept");
}

#[tokio::test]
async fn prewarm_false_opens_no_connection() {
    let (quiet, other) = (server("Yes.").await, server("Yes.").await);
    let servers = [("quiet", &quiet), ("other", &other)];
    let env = TestEnv::new();
    env.config(&config("[runs]\nprewarm = false", &servers));
    let _daemon = env.daemon().await;
    expect(&env, "", "").await.unwrap();
    let unknown = expect(&env, "nobody", "").await.expect_err("refused");
    assert_eq!(unknown.code(), Some(404), "{unknown}");

    // Another one that is connected to later is there, and the first still is not.
    env.config(&config("", &servers));
    env.run(&["daemon", "reload"]).await.ok();
    expect(&env, "", "other").await.unwrap();
    connections(&other, 1).await;
    assert_eq!(quiet.progress().connections, 0);
}
