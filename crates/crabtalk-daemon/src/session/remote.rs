//! Authenticates the client of a session (WIRE-5, REMOTE-1).
//!
//! Invariants: a client of the Unix socket is the owner; any other client has no rights
//! before its token is found; the token of a connection does not change.

use super::{LOCAL_SENDER, Session};
use crate::audit::entry;
use crate::error::Error;
use crate::node::Node;
use crate::remote::{Grant, Listener, REFUSAL_DELAY, Serve, Shown};
use crabtalk_domain::Principal;
use crabtalk_guardian::{Peers, Refusal};
use crabtalk_proto::{HelloMsg, PROTOCOL_VERSION, Role, Server, Status, WelcomeMsg};
use crabtalk_transport::{Accept, Peer, serve};
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use tokio_util::sync::CancellationToken;

/// Serves the connections of TCP listeners.
pub(crate) fn remote_clients(node: &Arc<Node>) -> Serve {
    let node = Arc::downgrade(node);
    Box::new(move |listener, stop| {
        let node = Weak::clone(&node);
        Box::pin(async move {
            match (listener, node.upgrade()) {
                (Listener::Plain(listener), Some(node)) => answer(listener, node, stop).await,
                (Listener::Tls(listener), Some(node)) => answer(listener, node, stop).await,
                (Listener::Plain(_) | Listener::Tls(_), None) => {}
            }
        })
    })
}

async fn answer<A>(listener: A, node: Arc<Node>, stop: CancellationToken)
where
    A: Accept<Peer = SocketAddr>,
{
    let crowd = node.crowd.clone();
    let ends = stop.clone();
    let session =
        move |peer: SocketAddr| Ok(Session::of_stranger(Arc::clone(&node), peer, ends.clone()));
    serve(listener, crowd, session, stop).await;
}

/// The client of a session.
pub(super) enum Who {
    Owner,
    Remote(Remote),
}

pub(super) struct Remote {
    address: SocketAddr,
    /// The client's token, once authenticated.
    shown: OnceLock<Shown>,
}

impl Who {
    pub(super) fn role(&self) -> Role {
        match self {
            Self::Owner => Role::Admin,
            Self::Remote(remote) => {
                let shown = remote.shown.get();
                shown.map_or(Role::Stranger, |shown| shown.grant().role())
            }
        }
    }

    pub(super) fn ended(&self) -> impl Future<Output = Error> + Send + 'static {
        type Ended = Pin<Box<dyn Future<Output = Error> + Send>>;
        let ended: Option<Ended> = match self {
            Self::Owner => None,
            Self::Remote(remote) => {
                let shown = remote.shown.get();
                shown.map(|shown| -> Ended { Box::pin(shown.grant().ended()) })
            }
        };
        async move {
            match ended {
                Some(ended) => ended.await,
                None => pending().await,
            }
        }
    }
}

impl Session {
    /// Creates the session of a Unix socket, which only the owner's processes can open.
    /// Refuses processes of agents' commands (GATE-5) and processes that cannot be checked.
    pub(crate) fn of_local_client(
        node: Arc<Node>,
        peers: &Peers,
        Peer { uid, pid, handle }: Peer,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        // A system that does not report the peer has no guardian either.
        if let Some(pid) = pid {
            let handle = handle
                .as_ref()
                .map(|handle| handle.as_ref().map(|h| h.as_fd()));
            peers
                .judge(pid, handle)
                .map_err(|refusal| match &refusal {
                    Refusal::Command => {
                        tracing::warn!(target: "security", uid, pid, "a tool process tried to connect");
                        Error::Forbidden(refusal.to_string())
                    }
                    Refusal::Unreadable { .. } => {
                        tracing::warn!(target: "security", uid, pid, %refusal, "a client that cannot be judged tried to connect");
                        Error::Forbidden(refusal.to_string())
                    }
                    Refusal::Exhausted(_) => {
                        tracing::warn!(pid, %refusal, "a client was turned away");
                        Error::Unavailable(refusal.to_string())
                    }
                })?;
        }
        Ok(Self::new(node, Who::Owner, shutdown))
    }

    /// Creates the session of a remote client, which must authenticate first.
    fn of_stranger(node: Arc<Node>, address: SocketAddr, shutdown: CancellationToken) -> Self {
        let remote = Remote {
            address,
            shown: OnceLock::new(),
        };
        Self::new(node, Who::Remote(remote), shutdown)
    }

    /// The client's token; `None` for the owner, and for an unauthenticated client, whose
    /// requests are refused.
    pub(super) fn grant(&self) -> Option<&Arc<Grant>> {
        match &self.who {
            Who::Owner => None,
            Who::Remote(remote) => remote.shown.get().map(Shown::grant),
        }
    }

    /// The owner of the client, as text for people.
    pub(super) fn owner_of_client(&self) -> String {
        match self.grant() {
            Some(grant) => format!("token {}", grant.name()),
            None => "this user".to_owned(),
        }
    }

    /// Answers a Hello: checks the token, and lists a component.
    pub(super) async fn welcome(&self, request: HelloMsg) -> Result<WelcomeMsg, Error> {
        if request.protocol_version == 0 {
            return Err(Error::Invalid("protocol_version counts from 1".into()));
        }
        self.show_token(&request).await?;
        if request.component && self.present.get().is_none() {
            let gateways = &self.node.mcps.gateways;
            let present = gateways.enter(&request.client, &self.owner_of_client())?;
            // A concurrent Hello of this connection may have set it.
            let _ = self.present.set(present);
        }
        Ok(WelcomeMsg {
            protocol_version: PROTOCOL_VERSION.min(request.protocol_version),
            daemon_version: self.version().to_owned(),
            default_sender: self.default_sender().to_owned(),
            role: self.role().name().into(),
            takes_images: true,
        })
    }

    /// Checks the token of a Hello. A refusal is delayed.
    async fn show_token(&self, hello: &HelloMsg) -> Result<(), Error> {
        let Who::Remote(remote) = &self.who else {
            return Ok(());
        };
        if remote.shown.get().is_some() {
            return Ok(());
        }
        let elsewhere = &self.node.remote;
        if let Some(grant) = elsewhere.tokens.find(&hello.token) {
            if grant.comes_anew(remote.address.ip()) {
                self.record_login(remote, &grant, &hello.client).await?;
            }
            tracing::info!(
                token = grant.name(),
                address = %remote.address,
                client = %crabtalk_proto::visible(&hello.client),
                "a client authenticated"
            );
            // A concurrent Hello of this connection may have set it.
            let _ = remote.shown.set(grant.show());
            return Ok(());
        }
        if let Some(count) = elsewhere.refusals.add() {
            tracing::warn!(
                target: "security",
                address = %remote.address,
                count,
                "a token was refused"
            );
        }
        tokio::time::sleep(REFUSAL_DELAY).await;
        let message = match hello.token.is_empty() {
            true => "this daemon needs a token: `crabtalk tokens add` makes one on its machine",
            false => "this token is unknown or has expired",
        };
        Err(Error::Unauthorized(message.into()))
    }

    /// Records a login; if that fails, the client is refused.
    async fn record_login(
        &self,
        remote: &Remote,
        grant: &Grant,
        client: &str,
    ) -> Result<(), Error> {
        let mut login = entry("login", format_args!("token/{}", grant.name()));
        login.from = remote.address.to_string();
        let login = login.with("client", crabtalk_proto::visible(client).into_owned());
        self.node.audit.record(login).await?;
        grant.came(remote.address.ip());
        Ok(())
    }

    /// The default sender of the client's messages (CONV-8).
    pub(super) fn default_sender(&self) -> &str {
        self.grant().map_or(LOCAL_SENDER, |grant| grant.name())
    }

    /// The client's principal when it uses a sender; an empty one is its default sender.
    pub(super) fn principal(&self, sender: &str) -> Principal {
        match self.grant() {
            None => Principal::Owner,
            Some(grant) => {
                let named = !sender.is_empty();
                let sender = if named { sender } else { grant.name() };
                grant.principal(&self.config(), sender, named)
            }
        }
    }

    /// The principal of the client's answers to asks.
    pub(super) fn answering(&self) -> Principal {
        match self.grant() {
            None => Principal::Owner,
            Some(grant) => grant.answers_as(&self.config()),
        }
    }

    /// The client's address; empty for a client on the Unix socket.
    pub(super) fn address(&self) -> String {
        match &self.who {
            Who::Owner => String::new(),
            Who::Remote(remote) => remote.address.to_string(),
        }
    }

    /// Logs a request that was refused because of the client's rights.
    pub(super) fn tell_refusal(&self, operation: &'static str, status: &Status) {
        let Who::Remote(remote) = &self.who else {
            return;
        };
        let token = self.grant().map_or("", |grant| grant.name());
        tracing::info!(
            target: "security",
            token,
            address = %remote.address,
            operation,
            code = status.code,
            "a request was refused"
        );
    }
}
