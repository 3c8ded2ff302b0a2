//! The run loop without the daemon: an agent, a hook that brings a tool, a
//! model, a store, one question. The model and the store are doubles.

use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::*;
use crabtalk_runtime::{Catalog, Parts, RunRequest, Runtime};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::json;
use std::{future::ready, io::Write, path::Path, sync::Arc, sync::atomic::AtomicU64};

struct Tide;

impl Hook for Tide {
    fn on_register_tools<'a>(&'a self, tools: &'a mut ToolRegistry) -> BoxFuture<'a, ()> {
        tools.register(Arc::new(Tide));
        Box::pin(ready(()))
    }
}

impl ToolProvider for Tide {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![Arc::new(ToolSpec {
            name: "tide".into(),
            description: "Tells how the water stands.".into(),
            parameters: json!({"type": "object"}).into(),
            default_permission: Permission::Allow,
        })]
    }
    fn subject<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(ready(Ok(Subject::Other)))
    }
    fn call<'a>(&'a self, _: &'a Invocation, _: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(ready(ToolOutput::ok("The water is low.")))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let answers = vec![
        Reply::tool("tide", json!({})),
        Reply::text("Low. Sideways!"),
    ];
    let parts = Parts {
        model: Arc::new(ScriptedModel::new(answers)),
        storage: Arc::new(MemoryStore::default()),
        tools: Vec::new(),
        hook: Arc::new(Tide),
        clock: Arc::new(SystemClock),
        approvals: Arc::new(()),
        ledger: Arc::new(()),
        ends: Vec::new(),
        delegates: Arc::new(AtomicU64::new(1)),
        disk: Arc::new(|path: &Path| path.canonicalize().ok()),
    };
    let crab = AgentConfig::new(AgentName::new("crab")?, "You are Crab.");
    let runtime = Runtime::new(parts, Catalog::of(crab));
    let question = RunRequest::new(ConversationKey::new("crab", "user")?, "Which way?");
    let mut run = runtime.submit(question)?;
    while let Some(next) = run.next().await? {
        writeln!(std::io::stdout(), "{:?}", next.event)?;
    }
    runtime.shutdown().await;
    Ok(())
}
