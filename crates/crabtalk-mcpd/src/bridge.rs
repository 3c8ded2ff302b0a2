//! Requests from sessions to the server, and what it says to them.
//!
//! There is one server and any number of sessions. A request goes to the server as it
//! came, and its answer back; cancelling and progress follow it. What the server tells
//! of itself goes to all sessions; what it asks for goes to the session whose request
//! it is at, the latest one if there are several.

use anyhow::Context;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::*;
use rmcp::service::{
    NotificationContext, OriginatingRequestId, Peer, PeerRequestOptions, RequestContext,
    RoleClient, RoleServer, Service, ServiceError,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::task::TaskTracker;

/// Sessions that are told of what changes; the oldest is forgotten beyond this.
const MAX_SESSIONS: usize = 64;

/// Requests that are under way at the server.
const MAX_REQUESTS: usize = 256;

/// Who is to be told what.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    register: Mutex<Register>,
    /// What the server asks; each ends with its session at the latest.
    questions: TaskTracker,
}

#[derive(Debug, Default)]
struct Register {
    open: Vec<Peer<RoleServer>>,
    /// By the token that the server got: whose request it is.
    requests: HashMap<ProgressToken, Asked>,
    count: u64,
}

/// A request that is under way.
#[derive(Debug, Clone)]
struct Asked {
    number: u64,
    session: Peer<RoleServer>,
    id: RequestId,
    /// What the session calls its progress, if it wants to hear of it.
    token: Option<ProgressToken>,
    /// What is being told of it, which goes before its answer.
    told: TaskTracker,
}

impl Sessions {
    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, session: Peer<RoleServer>) {
        let mut register = self.register();
        register.open.retain(|one| !one.is_transport_closed());
        if register.open.len() >= MAX_SESSIONS {
            register.open.remove(0);
        }
        register.open.push(session);
    }

    /// The request that a question of the server belongs to.
    fn latest(&self) -> Option<Asked> {
        let register = self.register();
        register
            .requests
            .values()
            .max_by_key(|asked| asked.number)
            .cloned()
    }
}

/// One session's way to the server.
#[derive(Debug, Clone)]
pub(crate) struct Bridge {
    server: Peer<RoleClient>,
    says: ServerConfig,
    versions: &'static [ProtocolVersion],
    sessions: Arc<Sessions>,
}

impl Bridge {
    pub(crate) fn new(server: Peer<RoleClient>, sessions: Arc<Sessions>) -> anyhow::Result<Self> {
        let told = server.peer_info().context("it did not say who it is")?;
        let mut says = InitializeResult::new(told.capabilities.clone());
        if let Some(info) = &told.server_info {
            says.server_info = info.clone();
        }
        says.instructions.clone_from(&told.instructions);
        Ok(Self {
            server,
            says,
            versions: ProtocolVersion::known_up_to(&told.protocol_version),
            sessions,
        })
    }

    /// Sends a request on, and waits for its answer or for its end.
    async fn send_on(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if self.sessions.register().requests.len() >= MAX_REQUESTS {
            return Err(ErrorData::internal_error(
                "too many requests at a time",
                None,
            ));
        }
        let asked = Asked {
            number: 0,
            session: context.peer.clone(),
            id: context.id.clone(),
            token: context.meta.get_progress_token(),
            told: TaskTracker::new(),
        };
        let told = asked.told.clone();
        let options = PeerRequestOptions::no_options().with_meta(context.meta);
        let sent = self.server.send_cancellable_request(request, options).await;
        let mut handle = sent.map_err(failed)?;
        let _noted = Noted::new(&self.sessions, handle.progress_token.clone(), asked);
        tokio::select! {
            answer = &mut handle.rx => {
                told.close();
                told.wait().await;
                let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                return answer.map_err(failed);
            }
            () = context.ct.cancelled() => {}
        }
        // The server hears of it; if it does not, it is about to end.
        let _ = handle.cancel(None).await;
        Err(ErrorData::internal_error("it was cancelled", None))
    }
}

/// A request that is noted as long as somebody waits for it.
struct Noted<'a> {
    sessions: &'a Sessions,
    token: ProgressToken,
}

impl<'a> Noted<'a> {
    fn new(sessions: &'a Sessions, token: ProgressToken, mut asked: Asked) -> Self {
        let mut register = sessions.register();
        register.count += 1;
        asked.number = register.count;
        register.requests.insert(token.clone(), asked);
        drop(register);
        Self { sessions, token }
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.sessions.register().requests.remove(&self.token);
    }
}

/// What the server said is wrong, or that it says nothing any more.
fn failed(error: ServiceError) -> ErrorData {
    if let ServiceError::McpError(error) = error {
        return error;
    }
    ErrorData::internal_error(format!("the server does not answer: {error}"), None)
}

/// A method that sends its request on and takes the one kind of answer that there is.
macro_rules! sent_on {
    ($method:ident, $request:ident, Option<$params:ty>, $result:ident) => {
        sent_on!(@ $method, Option<$params>, $result, |params: Option<$params>| {
            let mut request = $request::default();
            request.params = params.map(bare);
            request
        });
    };
    ($method:ident, $request:ident, $params:ty, $result:ident) => {
        sent_on!(@ $method, $params, $result, |params| $request::new(bare(params)));
    };
    (@ $method:ident, $params:ty, EmptyResult, $make:expr) => {
        async fn $method(
            &self,
            params: $params,
            context: RequestContext<RoleServer>,
        ) -> Result<(), ErrorData> {
            // Whatever it says, it is done.
            self.send_on($make(params).into(), context).await.map(|_| ())
        }
    };
    (@ $method:ident, $params:ty, $result:ident, $make:expr) => {
        async fn $method(
            &self,
            params: $params,
            context: RequestContext<RoleServer>,
        ) -> Result<sent_on!(# $result), ErrorData> {
            match self.send_on($make(params).into(), context).await? {
                sent_on!(= $result, answer) => Ok(sent_on!(> $result, answer)),
                _ => Err(unexpected()),
            }
        }
    };
    (# CallToolResult) => { CallToolResponse };
    (# GetPromptResult) => { GetPromptResponse };
    (# ReadResourceResult) => { ReadResourceResponse };
    (# $result:ident) => { $result };
    (= $result:ident, $answer:ident) => { ServerResult::$result($answer) };
    (> $result:ident, $answer:ident) => { $answer.into() };
}

/// Parameters without what the session said beside them: the request has its own word
/// for its progress on the way to the server.
fn bare<P: RequestParamsMeta>(mut params: P) -> P {
    *params.meta_mut() = None;
    params
}

/// An answer of another kind than was asked for.
fn unexpected() -> ErrorData {
    ErrorData::internal_error(
        "the server answered something else than was asked for",
        None,
    )
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        self.says.clone()
    }

    /// What the server speaks, which is what goes through here.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.sessions.opened(context.peer);
    }

    sent_on!(
        complete,
        CompleteRequest,
        CompleteRequestParams,
        CompleteResult
    );
    sent_on!(
        set_level,
        SetLevelRequest,
        SetLevelRequestParams,
        EmptyResult
    );
    sent_on!(
        get_prompt,
        GetPromptRequest,
        GetPromptRequestParams,
        GetPromptResult
    );
    sent_on!(
        list_prompts,
        ListPromptsRequest,
        Option<PaginatedRequestParams>,
        ListPromptsResult
    );
    sent_on!(
        list_resources,
        ListResourcesRequest,
        Option<PaginatedRequestParams>,
        ListResourcesResult
    );
    sent_on!(
        list_resource_templates,
        ListResourceTemplatesRequest,
        Option<PaginatedRequestParams>,
        ListResourceTemplatesResult
    );
    sent_on!(
        read_resource,
        ReadResourceRequest,
        ReadResourceRequestParams,
        ReadResourceResult
    );
    sent_on!(
        subscribe,
        SubscribeRequest,
        SubscribeRequestParams,
        EmptyResult
    );
    sent_on!(
        unsubscribe,
        UnsubscribeRequest,
        UnsubscribeRequestParams,
        EmptyResult
    );
    sent_on!(
        call_tool,
        CallToolRequest,
        CallToolRequestParams,
        CallToolResult
    );
    sent_on!(
        list_tools,
        ListToolsRequest,
        Option<PaginatedRequestParams>,
        ListToolsResult
    );

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let answer = self.send_on(request.into(), context).await?;
        let value = serde_json::to_value(answer);
        value.map(CustomResult::new).map_err(|_| unexpected())
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleServer>,
    ) {
        // A server that is gone hears nothing.
        let _ = self.server.send_notification(notification.into()).await;
    }
}

#[derive(Debug)]
pub(crate) struct Below(Arc<Sessions>);

impl Below {
    pub(crate) fn new(sessions: Arc<Sessions>) -> Self {
        Self(sessions)
    }
}

impl Service<RoleClient> for Below {
    async fn handle_request(
        &self,
        mut request: ServerRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        if matches!(request, ServerRequest::PingRequest(_)) {
            return Ok(ClientResult::empty(()));
        }
        let nobody = || ErrorData::internal_error("no session has asked for anything", None);
        let asked = self.0.latest().ok_or_else(nobody)?;
        // So that it reaches the session in the stream of its request.
        let origin = OriginatingRequestId(asked.id);
        request.extensions_mut().insert(origin);
        // In a task of its own: within this one the library takes the server's request
        // for the origin.
        let asking = async move { asked.session.send_request(request).await };
        match self.0.questions.spawn(asking).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(ServiceError::TransportClosed)),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what a later version of the protocol tells is told on as well"
    )]
    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        match notification {
            ServerNotification::CancelledNotification(_) => {}
            ServerNotification::ProgressNotification(mut progress) => {
                let token = &progress.params.progress_token;
                let asked = self.0.register().requests.get(token).cloned();
                if let Some(asked) = asked
                    && let Some(token) = asked.token
                {
                    let _telling = asked.told.token();
                    progress.params.progress_token = token;
                    let _ = asked.session.send_notification(progress.into()).await;
                }
            }
            told => {
                let open = self.0.register().open.clone();
                for session in open {
                    // One that is gone hears nothing.
                    let _ = session.send_notification(told.clone()).await;
                }
            }
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        let form = FormElicitationCapability::default();
        can.elicitation = Some(ElicitationCapability::new().with_form(form));
        ClientConfig::new(
            can,
            Implementation::new("crabtalk-mcpd", env!("CARGO_PKG_VERSION")),
        )
    }
}
