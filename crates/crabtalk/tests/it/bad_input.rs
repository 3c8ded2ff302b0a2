//! Invalid requests and configurations are refused with a reason.

use crate::rig::TestEnv;
use crabtalk_proto::{Client, ClientError, SendMsg};

fn refused<T>(answer: Result<T, ClientError>) -> (u32, String) {
    match answer {
        Err(ClientError::Refused(status)) => (status.code, status.message),
        Err(error) => panic!("not refused: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

fn to(agent: &str, sender: &str, content: &str) -> SendMsg {
    SendMsg {
        agent: agent.into(),
        sender: Some(sender.into()),
        content: content.into(),
        ..SendMsg::default()
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_with_a_reason() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    for (request, code, says) in [
        (to("nobody", "u", "hi"), 404, "there are: crab"),
        (to("crab", "u", ""), 400, "empty"),
        (to("crab", "u", " \n\t"), 400, "empty"),
        (to("../crab", "u", "hi"), 400, "is not a valid name"),
        (to("crab", &"x".repeat(5000), "hi"), 400, "5000 bytes"),
        (to("crab", "cron", "hi"), 403, "reserved"),
        (to("crab", "delegate:1", "hi"), 403, "reserved"),
    ] {
        let (found, message) = refused(connection.send(request).await);
        assert_eq!(found, code, "{message}");
        assert!(message.contains(says), "{message}");
    }
    let cwd = SendMsg {
        cwd: Some("/does/not/exist".into()),
        ..to("crab", "u", "hi")
    };
    let (code, message) = refused(connection.send(cwd).await);
    assert_eq!(code, 400);
    assert!(message.contains("/does/not/exist"), "{message}");
    assert!(env.logs().is_empty());
    connection.send(to("crab", "u", "hi")).await.unwrap();
}

#[tokio::test]
async fn second_daemon_names_the_first() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let pid = daemon.pid().as_raw_nonzero();
    let link = env.root().join("link");
    std::os::unix::fs::symlink(&env.home, &link).unwrap();
    for home in [&env.home, &link] {
        let home = home.to_str().unwrap();
        let second = env.run(&["--home", home, "daemon", "run"]).await;
        let says = second.fails(1);
        assert!(says.contains(&format!("pid {pid} ")), "{says}");
    }
    env.connect().await.ping(Default::default()).await.unwrap();
}

#[tokio::test]
async fn configuration_error_names_position_and_remedy() {
    let env = TestEnv::new();
    env.config("[provider.p]\nkind = \"opanai\"\nmodels = [\"m\"]\n");
    let run = env.run(&["daemon", "run"]).await.fails(1);
    assert!(
        run.contains("config.toml:2:8") && run.contains("openai"),
        "{run}"
    );
    // A client that starts the daemon reports the same.
    let ask = env.run(&["ask", "hello"]).await.fails(3);
    assert!(ask.contains("config.toml:2:8"), "{ask}");
    // An unknown key causes a warning with the nearest known key.
    env.config("modle = \"offline\"\n");
    let daemon = env.daemon().await;
    let log = daemon.stderr();
    assert!(
        log.contains("config.toml:1:1") && log.contains("did you mean model?"),
        "{log}"
    );
}
