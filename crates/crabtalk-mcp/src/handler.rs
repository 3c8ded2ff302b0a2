//! Messages that a server sends on its own: progress, questions, changes of its tools.
//!
//! Invariant: a question reaches only the people of the conversation whose call caused
//! it; it is declined if that call cannot be determined.

use crate::streamable::Streamable;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ErrorData, Implementation, NumberOrString, ProgressNotificationParam, ProtocolVersion,
    RequestId,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};

/// Maximum number of queued messages for the caller of one call.
const MAX_WAITING: usize = 16;

/// A message of the server about a call.
pub(crate) enum Heard {
    Progress(ProgressNotificationParam),
    /// A question as a form schema, with a channel for the answer.
    Question {
        message: String,
        schema: Value,
        answer: oneshot::Sender<Answered>,
    },
}

/// A person's answer to a form.
pub(crate) enum Answered {
    Accept(Value),
    Decline,
    Cancel,
}

/// A call in progress at a server.
struct Call {
    /// The conversation of the call; others are not asked.
    conversation: String,
    id: RequestId,
    tell: mpsc::Sender<Heard>,
}

/// The calls in progress at a server.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<NumberOrString, Call>>);

impl Calls {
    fn all(&self) -> MutexGuard<'_, HashMap<NumberOrString, Call>> {
        // A panic cannot leave the map inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to the messages about a call until the returned guard is dropped.
    pub(crate) fn listen(
        self: &Arc<Self>,
        token: NumberOrString,
        id: RequestId,
        conversation: String,
    ) -> (mpsc::Receiver<Heard>, Listening) {
        let (tell, hear) = mpsc::channel(MAX_WAITING);
        let call = Call {
            conversation,
            id,
            tell,
        };
        self.all().insert(token.clone(), call);
        let listening = Listening {
            calls: Arc::clone(self),
            token,
        };
        (hear, listening)
    }

    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// The call that a question belongs to.
    fn asked(&self, origin: Option<&InboundStreamOrigin>) -> Option<mpsc::Sender<Heard>> {
        let calls = self.all();
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let call = calls.values().find(|call| call.id == *id);
            return call.map(|call| call.tell.clone());
        }
        let mut calls = calls.values();
        let first = calls.next()?;
        let others = calls.any(|call| call.conversation != first.conversation);
        (!others).then(|| first.tell.clone())
    }
}

/// Ends the subscription on drop.
pub(crate) struct Listening {
    calls: Arc<Calls>,
    token: NumberOrString,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.calls.all().remove(&self.token);
    }
}

/// The client's side of a connection.
pub(crate) struct Handler {
    pub(crate) server: String,
    pub(crate) calls: Arc<Calls>,
    /// Notified when the list of tools changed.
    pub(crate) changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        let us = Implementation::new("crabtalk", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(capabilities, us);
        // Later versions have no handshake.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let tell = {
            let calls = self.calls.all();
            calls
                .get(&params.progress_token.0)
                .map(|call| call.tell.clone())
        };
        if let Some(tell) = tell {
            // A dropped report is superseded by a later one.
            let _ = tell.try_send(Heard::Progress(params));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "only forms are among our capabilities"
        )]
        let (message, schema) = match request {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => (message, requested_schema),
            _ => return Ok(declined),
        };
        let order = schema.property_order.clone();
        let mut schema = serde_json::to_value(&schema).unwrap_or_default();
        if let Some(order) = order {
            schema["order"] = order.into();
        }
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let Some(tell) = self.calls.asked(origin) else {
            tracing::info!(server = %self.server, "declined a question of an MCP server: its call cannot be determined");
            return Ok(declined);
        };
        let (answer, answered) = oneshot::channel();
        let question = Heard::Question {
            message,
            schema,
            answer,
        };
        match tell.try_send(question) {
            Ok(()) => {}
            // Too many questions are queued.
            Err(TrySendError::Full(_)) => return Ok(declined),
            Err(TrySendError::Closed(_)) => {
                return Ok(ElicitResult::new(ElicitationAction::Cancel));
            }
        }
        Ok(match answered.await {
            Ok(Answered::Accept(content)) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Ok(Answered::Decline) => declined,
            // Its call has ended.
            Ok(Answered::Cancel) | Err(_) => ElicitResult::new(ElicitationAction::Cancel),
        })
    }
}

/// The transport over HTTP.
pub(crate) type HttpTransport = rmcp::transport::StreamableHttpClientTransport<Streamable>;
