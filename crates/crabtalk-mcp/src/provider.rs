//! The tools of all servers as a tool provider.
//!
//! Invariants: offering tools sends no request; calls have passed the gate; a tool whose
//! declaration changed since it was last allowed is shown again.

use crate::call::{self, Wanted};
use crate::declarations::Allowed;
use crate::list::{ListedTool, Tools};
use crate::output::{self, output};
use crate::said;
use crate::server::Server;
use crate::servers::Servers;
use crabtalk_domain::tool::{
    Caller, Invocation, Preview, PreviewKind, Subject, ToolOutput, ToolProvider, ToolSpec,
};
use crabtalk_domain::{BoxFuture, ConversationKey};
use rmcp::model::JsonObject;
use serde_json::Value;
use std::sync::Arc;

/// The result for a tool that is no longer there.
const NO_TOOL: &str = "the tool is no longer available";

impl Servers {
    fn find(&self, name: &str) -> Option<(Arc<Server>, Arc<Tools>)> {
        let (server, _) = name.split_once("__")?;
        let server = self.get(server)?;
        let tools = server.tools();
        tools.get(name)?;
        Some((server, tools))
    }

    /// The tool's declaration when it was last allowed and now, if they differ.
    fn news(&self, name: &str) -> Option<(Allowed, ListedTool)> {
        let (_, tools) = self.find(name)?;
        let known = tools.get(name)?.clone();
        let before = self.0.seen.allowed(name)?;
        (before.print != known.print).then_some((before, known))
    }

    /// Records that a call of the tool with its current description was allowed.
    async fn note_allowed(&self, known: &ListedTool) {
        let now = Allowed {
            print: known.print.clone(),
            described: known.described(),
        };
        if self.0.seen.note_allowed(&known.spec.name, now) {
            let seen = Arc::clone(&self.0.seen);
            // If it cannot be saved, the person is asked again after a restart.
            let _ = tokio::task::spawn_blocking(move || seen.save()).await;
        }
    }

    async fn execute(
        &self,
        call: &Invocation,
        shown: Option<&Preview>,
        caller: &dyn Caller,
    ) -> ToolOutput {
        let Some((server, tools)) = self.find(&call.name) else {
            return ToolOutput::error(NO_TOOL);
        };
        let Some(known) = tools.get(&call.name) else {
            return ToolOutput::error(NO_TOOL);
        };
        if shown.is_some_and(|shown| shown.exact != known.print) {
            return ToolOutput::error(
                "the tool's description changed again during the approval, so the tool was not \
                 called",
            );
        }
        self.note_allowed(known).await;
        let conversation = call.key.to_string();
        let arguments = call.arguments.as_object().cloned().unwrap_or_default();
        let called = self.call_raw(&server, &known.raw, arguments, None, conversation, caller);
        match called.await {
            Ok(result) => output(result, &call.key, &*self.0.outputs).await,
            Err(why) => output::failed(why, &call.key, &*self.0.outputs).await,
        }
    }

    async fn call_raw(
        &self,
        server: &Server,
        raw: &str,
        arguments: JsonObject,
        meta: Option<JsonObject>,
        conversation: String,
        caller: &dyn Caller,
    ) -> Result<rmcp::model::CallToolResult, String> {
        let link = server.link(&self.0.pace).await?;
        let wanted = Wanted {
            settings: &server.settings,
            raw,
            arguments,
            meta,
            conversation,
        };
        let called = call::call(&link, &self.0.means.tasks, wanted, caller).await;
        server.use_now();
        called
    }

    /// Calls a server's tool by the server's own name for it. Returns the text, the
    /// structured answer if there is one, and whether the tool failed.
    ///
    /// # Errors
    /// The reason why the call failed.
    pub async fn call_tool(
        &self,
        server: &str,
        raw: &str,
        arguments: Value,
        meta: Value,
        key: &ConversationKey,
    ) -> Result<(ToolOutput, Option<Value>), String> {
        let found = self.get(server);
        let server = found.ok_or_else(|| format!("MCP server {server} not found"))?;
        let object = |value: Value| match value {
            Value::Object(map) => map,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => JsonObject::new(),
        };
        let conversation = key.to_string();
        let called = self.call_raw(
            &server,
            raw,
            object(arguments),
            Some(object(meta)),
            conversation,
            &(),
        );
        let result = called.await.map_err(said::sentence)?;
        let structured = result.structured_content.clone();
        Ok((output(result, key, &*self.0.outputs).await, structured))
    }
}

impl ToolProvider for Servers {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        let mut specs = Vec::new();
        for server in self.all() {
            specs.extend(
                server
                    .tools()
                    .known
                    .iter()
                    .map(|known| Arc::clone(&known.spec)),
            );
        }
        specs
    }

    fn subject<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(std::future::ready(Ok(Subject::Other)))
    }

    fn is_news(&self, call: &Invocation) -> Option<String> {
        self.news(&call.name)?;
        Some("the tool's description changed since it was last allowed".into())
    }

    fn preview<'a>(
        &'a self,
        call: &'a Invocation,
        _: &'a Subject,
    ) -> BoxFuture<'a, Result<Option<Preview>, String>> {
        let preview = self.news(&call.name).map(|(before, known)| {
            let now = known.described();
            let diff = similar::TextDiff::from_lines(&before.described, &now);
            Preview {
                kind: PreviewKind::Diff,
                text: diff
                    .unified_diff()
                    .header("allowed before", "now")
                    .to_string(),
                note: "the tool's description changed since it was last allowed".into(),
                exact: known.print,
                before: before.print,
            }
        });
        Box::pin(std::future::ready(Ok(preview)))
    }

    fn call<'a>(&'a self, call: &'a Invocation, _: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.execute(call, None, &()))
    }

    fn call_for<'a>(
        &'a self,
        call: &'a Invocation,
        _: &'a Subject,
        shown: Option<&'a Preview>,
        caller: &'a dyn Caller,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.execute(call, shown, caller))
    }
}
