//! The offer to restart a daemon of another version.

use crate::rig::{TestEnv, Tmux, eventually, has_tools};
use crabtalk_proto::{
    ActiveConversationList, HelloMsg, ListActiveConversationsMsg, Role, Server, Status, WelcomeMsg,
};
use crabtalk_transport::{Crowd, serve};
use std::process::Stdio;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Environment variable with the socket, for the other process.
const SOCKET: &str = "CRABTALK_E2E_OTHER_VERSION";

/// A daemon of another version with the requests of a client that restarts it.
#[derive(Clone)]
struct Other;

impl Server for Other {
    fn version(&self) -> &str {
        "0.0.1"
    }

    fn role(&self) -> Role {
        Role::Admin
    }

    async fn hello(&self, _: HelloMsg) -> Result<WelcomeMsg, Status> {
        Ok(WelcomeMsg {
            protocol_version: 1,
            daemon_version: "0.0.1".into(),
            ..WelcomeMsg::default()
        })
    }

    async fn list_active_conversations(
        &self,
        _: ListActiveConversationsMsg,
    ) -> Result<ActiveConversationList, Status> {
        Ok(ActiveConversationList::default())
    }
}

/// Not a test: the process of the other version.
#[tokio::test]
async fn serve_as_another_version() {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    let listener = crabtalk_transport::listen(socket.as_ref()).await.unwrap();
    let session = |_| Ok::<_, Status>(Other);
    serve(listener, Crowd::new(64), session, CancellationToken::new()).await;
}

#[tokio::test]
async fn chat_offers_to_restart_daemon_of_another_version() {
    if !has_tools(
        "chat_offers_to_restart_daemon_of_another_version",
        &["tmux"],
    ) {
        return;
    }
    let env = TestEnv::new();
    std::fs::create_dir_all(&env.home).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "upgrade::serve_as_another_version",
            "--exact",
            "--nocapture",
        ])
        .env(SOCKET, env.socket())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    eventually("the other version", async || {
        std::os::unix::net::UnixStream::connect(env.socket()).ok()
    })
    .await;
    // Without a terminal, the version is only reported.
    let said = env.run(&["asks"]).await;
    assert!(
        said.stderr.contains("the daemon has version 0.0.1"),
        "{said:?}"
    );
    let tmux = Tmux::open(&env, "\"$CRABTALK\"");
    let screen = tmux.shows("Restart it now?", 1).await;
    assert!(screen.contains("the daemon has version 0.0.1"), "{screen}");
    tmux.types("y");
    let ended = crate::rig::within("the other version to end", other.wait());
    ended.await.unwrap();
    tmux.shows("type a message", 1).await;
    tmux.types("hello");
    tmux.shows("You told me: hello", 1).await;
    tmux.key("C-d");
    tmux.shows("ended with 0", 1).await;
    env.run(&["daemon", "stop"]).await.ok();
}
