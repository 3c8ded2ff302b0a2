//! Forwards messages between sessions and the server.
//!
//! There is one server and any number of sessions. Requests, cancellations, responses and
//! progress are forwarded unchanged. Notifications of the server go to all sessions; its
//! requests go to the session with the latest request in flight.

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

/// Maximum number of sessions that get notifications; beyond it the oldest is dropped.
const MAX_SESSIONS: usize = 64;

/// Maximum number of requests in flight at the server.
const MAX_REQUESTS: usize = 256;

/// The open sessions and their requests.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    register: Mutex<Register>,
    /// Requests of the server; each ends at the latest with its session.
    questions: TaskTracker,
}

#[derive(Debug, Default)]
struct Register {
    open: Vec<Peer<RoleServer>>,
    /// Requests in flight, by the progress token sent to the server.
    requests: HashMap<ProgressToken, PendingRequest>,
    count: u64,
}

/// A request in flight.
#[derive(Debug, Clone)]
struct PendingRequest {
    number: u64,
    session: Peer<RoleServer>,
    id: RequestId,
    /// The session's own progress token, if it gave one.
    token: Option<ProgressToken>,
    /// Progress notifications in flight, which must precede the response.
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

    /// The session request to which a request of the server belongs.
    fn latest(&self) -> Option<PendingRequest> {
        let register = self.register();
        register
            .requests
            .values()
            .max_by_key(|asked| asked.number)
            .cloned()
    }
}

/// The handler of one session.
#[derive(Debug, Clone)]
pub(crate) struct Bridge {
    server: Peer<RoleClient>,
    says: ServerConfig,
    versions: &'static [ProtocolVersion],
    sessions: Arc<Sessions>,
}

impl Bridge {
    pub(crate) fn new(server: Peer<RoleClient>, sessions: Arc<Sessions>) -> anyhow::Result<Self> {
        let told = server
            .peer_info()
            .context("the server sent no handshake result")?;
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

    /// Forwards a request and waits for its response or cancellation.
    async fn send_on(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if self.sessions.register().requests.len() >= MAX_REQUESTS {
            return Err(ErrorData::internal_error("too many requests at once", None));
        }
        let asked = PendingRequest {
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
        // Fails only if the server is about to end.
        let _ = handle.cancel(None).await;
        Err(ErrorData::internal_error("the request was cancelled", None))
    }
}

/// Registers a request until dropped.
struct Noted<'a> {
    sessions: &'a Sessions,
    token: ProgressToken,
}

impl<'a> Noted<'a> {
    fn new(sessions: &'a Sessions, token: ProgressToken, mut asked: PendingRequest) -> Self {
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

/// The server's error, or an error that it does not answer.
fn failed(error: ServiceError) -> ErrorData {
    if let ServiceError::McpError(error) = error {
        return error;
    }
    ErrorData::internal_error(format!("the server does not answer: {error}"), None)
}

/// A method that forwards its request and expects one kind of response.
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
            // Any response is success.
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

/// Removes the metadata: the request to the server has its own progress token.
fn bare<P: RequestParamsMeta>(mut params: P) -> P {
    *params.meta_mut() = None;
    params
}

/// The error for a response of another kind.
fn unexpected() -> ErrorData {
    ErrorData::internal_error("the server's response does not match the request", None)
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        self.says.clone()
    }

    /// The protocol versions of the server.
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
        // The server may be gone.
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
        let nobody = || ErrorData::internal_error("no session has a request in flight", None);
        let asked = self.0.latest().ok_or_else(nobody)?;
        // Sent in the stream of the session's request.
        let origin = OriginatingRequestId(asked.id);
        request.extensions_mut().insert(origin);
        // In a separate task: in this one the library would treat the server's request as
        // the origin.
        let asking = async move { asked.session.send_request(request).await };
        match self.0.questions.spawn(asking).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(ServiceError::TransportClosed)),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "notifications of later versions are forwarded, too"
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
                    // The session may be gone.
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
