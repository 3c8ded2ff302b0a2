//! Components and the daemon as services: installed, running, and planned ones;
//! and the programs themselves with a real daemon.

mod agents;

use crate::rig::{TestEnv, eventually, skipped};
use crabtalk_proto::{Client, GetHistoryMsg, ListComponentsMsg, SubscribeEventMsg};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

/// A program of another package, built with the workspace's tests. `None` if only this
/// package was built, which skips the test by name.
pub(crate) fn program(test: &str, name: &str) -> Option<PathBuf> {
    let beside = Path::new(crate::rig::CRABTALK).with_file_name(name);
    if !beside.is_file() {
        skipped(
            test,
            &format!("{name} is not built: cargo build --workspace"),
        );
        return None;
    }
    Some(beside)
}

/// A `systemctl` that records its arguments and starts the daemon.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$HOME/told"
case "$*" in
*restart*|*start*)
    setsid -f "$CRABTALK" daemon run > "$HOME/journal" 2>&1 < /dev/null
    while [ ! -S "$CRABTALK_HOME/daemon.sock" ]; do sleep 0.02; done ;;
esac
"#;

#[tokio::test]
async fn installed_daemon_is_restarted_by_the_service_manager() {
    let mut env = TestEnv::new();
    env.write("bin/systemctl", SYSTEMCTL);
    let systemctl = env.user_home.join("bin/systemctl");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&systemctl, mode).unwrap();
    let path = format!("{}/bin:/usr/bin:/bin", env.user_home.display());
    env.set("PATH", &path);
    env.set("CRABTALK", env!("CARGO_BIN_EXE_crabtalk"));
    env.run(&["daemon", "install"]).await.ok();
    env.run(&["ask", "hello"]).await.ok();
    env.run(&["daemon", "restart"]).await.ok();
    env.run(&["daemon", "stop"]).await.ok();
    env.run(&["ask", "again"]).await.ok();
    env.run(&["daemon", "stop"]).await.ok();
    // Other clients start the daemon through the same command.
    let program = format!(
        "#!/bin/sh\nHOME='{}' PATH='{path}' CRABTALK_HOME='{}' CRABTALK='{bin}' exec '{bin}' \"$@\"\n",
        env.user_home.display(),
        env.home.display(),
        bin = env!("CARGO_BIN_EXE_crabtalk"),
    );
    env.write("bin/crabtalk", &program);
    let program = env.user_home.join("bin/crabtalk");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let starter = crabtalk_client::Starter::new(program, &env.home);
    starter.start().await.unwrap();
    env.run(&["daemon", "stop"]).await.ok();
    let told = std::fs::read_to_string(env.user_home.join("told")).unwrap();
    let told: Vec<&str> = told.lines().collect();
    let unit = "ai.crabtalk.daemon.service";
    let start = format!("--user start {unit}");
    let restart = format!("--user restart {unit}");
    let enable = format!("--user enable {unit}");
    let want = [
        "--user daemon-reload",
        &enable,
        &restart,
        &start,
        &start,
        &start,
    ];
    assert_eq!(told, want);
    let log = std::fs::read_to_string(env.home.join("logs/daemon.log")).unwrap();
    assert_eq!(log.matches("ready version").count(), 4, "{log}");
}

#[tokio::test]
async fn components_are_listed_without_a_daemon() {
    let mut env = TestEnv::new();
    env.script(
        "crabtalk-mine",
        "#!/bin/sh\necho \"$@ in $CRABTALK_HOME\"\n",
    );
    let path = format!("{}:{}", env.work.display(), std::env::var("PATH").unwrap());
    env.set("PATH", &path);
    env.write(".crabtalk/run/stale.port", "1\nabc\n");
    env.write(".crabtalk/run/odd.port", "no port");
    let listed = env.run(&["--json", "--no-start", "components"]).await;
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let of = |name: &str| {
        let objects = listed
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let mut objects = objects.filter(|object: &serde_json::Value| object["name"] == name);
        objects
            .next()
            .unwrap_or_else(|| panic!("{name}: {}", listed.stdout))
    };
    assert_eq!(
        of("mine")["program"],
        env.work.join("crabtalk-mine").display().to_string()
    );
    assert_eq!(
        (&of("stale")["port"], &of("stale")["answers"]),
        (&1.into(), &false.into())
    );
    assert!(
        of("odd")["port_file_error"]
            .as_str()
            .unwrap()
            .contains("not a port")
    );
    // The same program is a command.
    let ran = env.run(&["mine", "a", "--b"]).await;
    assert_eq!(ran.stdout, format!("a --b in {}\n", env.home.display()));
    let table = env.run(&["components"]).await;
    assert!(
        table.stdout.contains("no answer at port 1"),
        "{}",
        table.stdout
    );
}

/// A program that listens on loopback, and its address.
pub(crate) struct Serving {
    _child: Child,
    pub(crate) port: u16,
}

/// Starts a program's `serve`, and waits until it reports its address.
pub(crate) async fn serve(env: &TestEnv, program: &Path) -> Serving {
    let mut command = env.program(program);
    command
        .arg("serve")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    loop {
        let line = said.next_line().await.unwrap().expect("it runs");
        if let Some((_, port)) = line.rsplit_once("127.0.0.1:") {
            return Serving {
                _child: child,
                port: port.parse().unwrap(),
            };
        }
    }
}

/// A body and its signature as GitHub would sign it: HMAC-SHA256 in hexadecimal, computed by openssl.
const BODY: &str = "Hello, World!";
const SECRET: &str = "It's a Secret to Everybody";
const SIGNATURE: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

/// Posts the signed body to a hook; returns the response's status and text.
async fn post(gateway: &Serving, hook: &str, signature: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", gateway.port))
        .await
        .unwrap();
    let request = format!(
        "POST /hook/{hook} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256={signature}\r\n\
         X-Build: 72\r\n\
         Content-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap_or_default();
    let text = answer.rsplit("\r\n").next().unwrap_or_default();
    (status.to_owned(), text.to_owned())
}

async fn said(env: &TestEnv, agent: &str, sender: &str) -> Vec<String> {
    let request = GetHistoryMsg {
        agent: agent.into(),
        sender: sender.into(),
        ..Default::default()
    };
    let page = env.connect().await.get_history(request).await;
    let entries = page.map(|page| page.entries).unwrap_or_default();
    let of_user = entries.into_iter().filter(|entry| entry.role == "user");
    of_user.map(|entry| entry.content).collect()
}

/// Waits until `crabtalk components` shows this text in a component's last column.
async fn listed_as(env: &TestEnv, name: &str, connected: &str) {
    eventually(&format!("{name} to be {connected}"), async || {
        let table = env.run(&["components"]).await.stdout;
        let row = table
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name))?;
        row.trim_end().ends_with(connected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn gateway_is_listed_by_name_while_connected() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let client = crabtalk_client::Client::new(
        crabtalk_client::Endpoint::of_home(&env.home),
        "doorbell/1.2",
    );
    let _daemon = {
        let staying = client.stay();
        let seen = async {
            listed_as(&env, "doorbell", "connected").await;
            let listed = env
                .connect()
                .await
                .list_components(ListComponentsMsg {})
                .await;
            let [one] = &listed.unwrap().components[..] else {
                panic!("one component is there")
            };
            assert_eq!(
                (one.source.as_str(), one.server.as_str()),
                ("hello", "doorbell/1.2")
            );
            assert_eq!((one.owner.as_str(), one.port), ("this user", 0));
            // It reconnects to the next daemon without help.
            daemon.kill().await;
            let daemon = env.daemon().await;
            listed_as(&env, "doorbell", "connected").await;
            daemon
        };
        tokio::select! {
            daemon = seen => daemon,
            never = staying => match never {},
        }
    };
    eventually("it to be gone", async || {
        let listed = env
            .connect()
            .await
            .list_components(ListComponentsMsg {})
            .await;
        listed.unwrap().components.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn signed_request_reaches_an_agent_once() {
    let test = "signed_request_reaches_an_agent_once";
    let Some(program) = program(test, "crabtalk-webhook") else {
        return;
    };
    let env = TestEnv::new();
    env.agent("clerk", "description: Takes orders.");
    env.write("secret", SECRET);
    let secret = env.user_home.join("secret");
    let hook = |name: &str, leads: &str| {
        let file = secret.display();
        format!("[hook.{name}]\nsecret_file = \"{file}\"\nscheme = \"github\"\n{leads}\n")
    };
    let config = format!(
        "listen = \"127.0.0.1:0\"\n{}{}",
        hook("ci", "event = \"ci:done\"\nheaders = [\"X-Build\"]"),
        hook("shop", "agent = \"clerk\"") + &hook("deaf", "event = \"nothing\"")
    );
    env.write(".crabtalk/config/webhook.toml", &config);
    let gateway = serve(&env, &program).await;
    let status = async |gateway: &Serving, hook| post(gateway, hook, SIGNATURE).await.0;
    assert_eq!(status(&gateway, "ci").await, "503", "no daemon runs");
    let daemon = env.daemon().await;
    let subscribe = SubscribeEventMsg {
        source: "ci:*".into(),
        target_agent: "clerk".into(),
        once: false,
        ..SubscribeEventMsg::default()
    };
    env.connect()
        .await
        .subscribe_event(subscribe)
        .await
        .unwrap();
    let forged = SIGNATURE.replace('7', "8");
    assert_eq!(post(&gateway, "ci", &forged).await.0, "401");
    for (hook, text) in [
        ("ci", "accepted"),
        ("shop", "accepted"),
        ("deaf", "accepted; no subscription matches"),
    ] {
        let accepted = post(&gateway, hook, SIGNATURE).await;
        assert_eq!(accepted, ("202".into(), text.into()), "{hook}");
        assert_eq!(status(&gateway, hook).await, "200", "repeated: {hook}");
    }
    drop(gateway);
    // The state survives restarts of both.
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let gateway = serve(&env, &program).await;
    listed_as(&env, "webhook", "connected").await;
    for hook in ["ci", "shop"] {
        assert_eq!(status(&gateway, hook).await, "200");
    }
    let with_header = format!("X-Build: 72\n\n{BODY}");
    for (sender, want) in [
        ("event:ci:done", with_header.as_str()),
        ("webhook/shop", BODY),
    ] {
        let heard = eventually("the message", async || {
            let heard = said(&env, "clerk", sender).await;
            (!heard.is_empty()).then_some(heard)
        });
        assert_eq!(heard.await, [want], "{sender}");
    }
}
