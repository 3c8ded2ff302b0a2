//! A registry of one provider in front of a scripted server.
#![allow(dead_code, reason = "every test file uses a part of it")]

use crabtalk_domain::model::{Chunk, Error, Model, Request, Response};
use crabtalk_domain::tool::ToolSpec;
use crabtalk_domain::{Message, Permission, ToolCall};
use crabtalk_model::{Kind, ModelConfig, ProviderConfig, Registry, Secret};
use crabtalk_testkit::scripted::{Reply, Script, Server};
use futures_util::StreamExt;
use serde_json::json;
use std::sync::Arc;

pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) registry: Registry,
}

impl Bench {
    pub(crate) async fn new(kind: Kind, script: Script) -> Self {
        Self::with(kind, script, |_| {}).await
    }

    pub(crate) async fn with(
        kind: Kind,
        script: Script,
        change: impl FnOnce(&mut ProviderConfig),
    ) -> Self {
        let server = Server::start(script).await;
        let mut config = provider("p", kind, &server.url(), &["m"]);
        change(&mut config);
        let registry = Registry::new(vec![config], None).expect("a good configuration");
        Self { server, registry }
    }

    pub(crate) async fn chunks(&self, request: &Request) -> Result<Vec<Chunk>, Error> {
        let stream: Vec<_> = self.registry.stream(request.clone()).collect().await;
        stream.into_iter().collect()
    }

    pub(crate) async fn send(&self, request: &Request) -> Result<Response, Error> {
        self.registry.send(request.clone()).await
    }
}

/// A provider whose models are all `the-id`, with a key that must not show.
pub(crate) fn provider(name: &str, kind: Kind, url: &str, models: &[&str]) -> ProviderConfig {
    let mut config = ProviderConfig::new(name, kind);
    config.base_url = Some(url.to_owned());
    config.api_key = Some(Secret::new("sk-planted"));
    config.models = models
        .iter()
        .map(|model| ModelConfig {
            id: "the-id".into(),
            ..ModelConfig::new(*model)
        })
        .collect();
    config
}

/// The answer of a web site that is not a model server.
pub(crate) fn site() -> Reply {
    let html = [("content-type", "text/html")];
    Reply::page(200, &html, "<html>Welcome</html>")
}

pub(crate) fn history(messages: Vec<Message>) -> Request {
    Request::new(
        "sys",
        messages.into_iter().map(Arc::new).collect::<Vec<_>>(),
    )
}

pub(crate) fn request(text: &str) -> Request {
    history(vec![Message::user(text)])
}

pub(crate) fn offer(request: &mut Request, tools: &[&str]) {
    let spec = |name: &&str| {
        Arc::new(ToolSpec {
            name: (*name).into(),
            description: "does it".into(),
            parameters: json!({"type": "object"}).into(),
            default_permission: Permission::Allow,
        })
    };
    request.tools = Arc::new(tools.iter().map(spec).collect());
}

pub(crate) fn calling(calls: &[(&str, &str, &str)]) -> Message {
    let mut message = Message::assistant("");
    message.tool_calls = calls
        .iter()
        .map(|(id, name, arguments)| ToolCall {
            id: (*id).into(),
            name: (*name).into(),
            arguments: (*arguments).into(),
        })
        .collect();
    message
}
