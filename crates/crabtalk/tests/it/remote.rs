//! Remote clients, over TCP and TLS (REMOTE-1).

mod audit;
mod commands;
mod door;
mod reach;

use crate::rig::{Daemon, ModelServer, TestEnv};
use crabtalk_client::{
    Address, Client, CreateTokenMsg, Endpoint, Fingerprint, ListTokensMsg, NewToken, Remote,
};

/// A daemon that listens on loopback.
pub(crate) struct Elsewhere {
    // Dropped before its environment.
    pub(crate) daemon: Daemon,
    pub(crate) env: TestEnv,
}

pub(crate) const PLAIN: &str = "[tcp]\nlisten = \"127.0.0.1:0\"\n";
pub(crate) const TLS: &str = "[tcp]\nlisten = \"127.0.0.1:0\"\ntls = true\n";

impl Elsewhere {
    /// Starts a daemon with this configuration.
    pub(crate) async fn with(config: &str) -> Self {
        let env = TestEnv::new();
        env.config(config);
        Self::of(env).await
    }

    /// Starts a daemon with a scripted model.
    pub(crate) async fn speaking(model: &ModelServer, config: &str) -> Self {
        let env = TestEnv::with_model(model);
        let text = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
        env.config(&format!("{text}\n{config}"));
        Self::of(env).await
    }

    pub(crate) async fn of(env: TestEnv) -> Self {
        let daemon = env.daemon().await;
        Self { daemon, env }
    }

    pub(crate) fn owner(&self) -> Client {
        Client::new(Endpoint::of_home(&self.env.home), "e2e")
    }

    /// The address of the daemon.
    pub(crate) async fn address(&self) -> String {
        let listed = self.owner().call(ListTokensMsg {}).await.unwrap();
        listed.listen.first().expect("it listens").clone()
    }

    pub(crate) async fn token(&self, request: CreateTokenMsg) -> NewToken {
        self.owner().call(request).await.unwrap()
    }

    /// A client with a new token.
    pub(crate) async fn client(&self, request: CreateTokenMsg) -> Client {
        let made = self.token(request).await;
        client_at(&made.listen[0], &made)
    }

    /// A client that may talk as `senders`.
    pub(crate) async fn talker(&self, name: &str, senders: &[&str]) -> Client {
        self.client(token(name, "talk", senders)).await
    }
}

pub(crate) fn token(name: &str, role: &str, senders: &[&str]) -> CreateTokenMsg {
    CreateTokenMsg {
        name: name.into(),
        role: role.into(),
        senders: senders.iter().map(|s| (*s).to_owned()).collect(),
        ..CreateTokenMsg::default()
    }
}

/// A client with a token, at an address.
pub(crate) fn client_at(address: &str, made: &NewToken) -> Client {
    let address = Address::parse(address).unwrap();
    let remote = match Fingerprint::parse(&made.fingerprint) {
        Some(pin) => Remote::pinned(address, &made.token, pin),
        None => Remote::plain(address, &made.token).unwrap(),
    };
    Client::new(remote.into(), "e2e/remote")
}
