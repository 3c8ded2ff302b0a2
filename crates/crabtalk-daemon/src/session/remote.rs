//! Who the client of a session is, and how it shows that (WIRE-5, REMOTE-1).
//!
//! Invariants: the Unix socket's client is the owner and needs no token; nobody
//! else is anything before its token was found; who that was does not change.

use super::{LOCAL_SENDER, Session};
use crate::audit::entry;
use crate::error::Error;
use crate::node::Node;
use crate::remote::{Answers, Ears, Grant, Listener, REFUSAL_DELAY, Shown};
use crate::services::Services;
use crabtalk_domain::{BoxFuture, Principal};
use crabtalk_guardian::{Peers, Refusal};
use crabtalk_proto::{HelloMsg, PROTOCOL_VERSION, Role, Server, Status, WelcomeMsg};
use crabtalk_transport::{Accept, Peer, serve};
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

impl Answers for Node {
    fn services(&self) -> &Services {
        &self.services
    }

    fn ears(&self) -> &Ears {
        self.remote.ears()
    }

    fn answer(
        self: Arc<Self>,
        listener: Listener,
        stop: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match listener {
                Listener::Plain(listener) => answer(listener, self, stop).await,
                Listener::Tls(listener) => answer(listener, self, stop).await,
            }
        })
    }
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

/// Who the client is.
pub(super) enum Who {
    Owner,
    Remote(Remote),
}

pub(super) struct Remote {
    address: SocketAddr,
    /// Its token, once it has shown one.
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
    /// A client of the Unix socket, which admits the owner's processes only. Refuses
    /// processes of agents' commands (GATE-5), and those that cannot be judged.
    pub(crate) fn of_local_client(
        node: Arc<Node>,
        peers: &Peers,
        Peer { uid, pid, handle }: Peer,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        // A system that does not name the peer has no guardian either.
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

    /// Of somebody who has to show a token first.
    fn of_stranger(node: Arc<Node>, address: SocketAddr, shutdown: CancellationToken) -> Self {
        let remote = Remote {
            address,
            shown: OnceLock::new(),
        };
        Self::new(node, Who::Remote(remote), shutdown)
    }

    /// The client's token; `None` is the owner's own client, or a stranger, whom
    /// nothing is answered.
    pub(super) fn grant(&self) -> Option<&Arc<Grant>> {
        match &self.who {
            Who::Owner => None,
            Who::Remote(remote) => remote.shown.get().map(Shown::grant),
        }
    }

    /// Whose the client is, for people.
    pub(super) fn owner_of_client(&self) -> String {
        match self.grant() {
            Some(grant) => format!("token {}", grant.name()),
            None => "this user".to_owned(),
        }
    }

    /// Lets in who says who it is: a token is checked, a component is entered
    /// among those that are present.
    pub(super) async fn welcome(&self, request: HelloMsg) -> Result<WelcomeMsg, Error> {
        if request.protocol_version == 0 {
            return Err(Error::Invalid("protocol_version counts from 1".into()));
        }
        self.show_token(&request).await?;
        if request.component && self.present.get().is_none() {
            let gateways = &self.node.mcps.gateways;
            let present = gateways.enter(&request.client, &self.owner_of_client())?;
            // Another Hello of this connection may have been faster.
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

    /// Finds the token that a client shows. A wrong one costs time.
    async fn show_token(&self, hello: &HelloMsg) -> Result<(), Error> {
        let Who::Remote(remote) = &self.who else {
            return Ok(());
        };
        if remote.shown.get().is_some() {
            return Ok(());
        }
        let elsewhere = &self.node.remote;
        if let Some(grant) = elsewhere.tokens().find(&hello.token) {
            if grant.comes_anew(remote.address.ip()) {
                self.record_login(remote, &grant, &hello.client).await?;
            }
            tracing::info!(
                token = grant.name(),
                address = %remote.address,
                client = %crabtalk_proto::visible(&hello.client),
                "a client came in by a token"
            );
            // Another Hello of this connection may have been faster.
            let _ = remote.shown.set(grant.show());
            return Ok(());
        }
        if let Some(count) = elsewhere.refusals().add() {
            tracing::warn!(
                target: "security",
                address = %remote.address,
                count,
                "a token was refused"
            );
        }
        tokio::time::sleep(REFUSAL_DELAY).await;
        let message = match hello.token.is_empty() {
            true => "this daemon wants a token: `crabtalk tokens add` makes one where it runs",
            false => "this token is not known here, or is over",
        };
        Err(Error::Unauthorized(message.into()))
    }

    /// Who cannot be recorded does not come in.
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

    /// The sender of a message that names none (CONV-8).
    pub(super) fn default_sender(&self) -> &str {
        self.grant().map_or(LOCAL_SENDER, |grant| grant.name())
    }

    /// Who the client is when it speaks as this sender; empty is its own.
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

    /// Who the client is when it answers what is asked.
    pub(super) fn answering(&self) -> Principal {
        match self.grant() {
            None => Principal::Owner,
            Some(grant) => grant.answers_as(&self.config()),
        }
    }

    /// From where the client comes; empty for this machine's owner.
    pub(super) fn address(&self) -> String {
        match &self.who {
            Who::Owner => String::new(),
            Who::Remote(remote) => remote.address.to_string(),
        }
    }

    /// Tells the log of a request that was refused for who the client is.
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
