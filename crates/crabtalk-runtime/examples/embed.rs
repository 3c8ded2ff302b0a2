//! The run loop without the daemon: an agent, a model, a store, one question.
//! The doubles stand for a real model and a real store.

use crabtalk_domain::{AgentConfig, AgentEvent, AgentName, ConversationKey, SystemClock};
use crabtalk_runtime::{Catalog, Parts, RunRequest, Runtime};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use std::io::Write;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let crab = AgentConfig::new(AgentName::new("crab")?, "You are Crab.");
    let runtime = Runtime::new(
        Parts {
            model: Arc::new(ScriptedModel::new(vec![Reply::text("Sideways, mostly.")])),
            storage: Arc::new(MemoryStore::default()),
            tools: Vec::new(),
            hook: Arc::new(()),
            clock: Arc::new(SystemClock),
            approvals: Arc::new(()),
            ledger: Arc::new(()),
            delegates: Arc::new(std::sync::atomic::AtomicU64::new(1)),
            disk: Arc::new(|path: &std::path::Path| path.canonicalize().ok()),
        },
        Catalog::of(crab),
    );
    let question = RunRequest::new(ConversationKey::new("crab", "user")?, "How do you walk?");
    let mut run = runtime.submit(question)?;
    while let Some(next) = run.next().await? {
        if let AgentEvent::Text(text) = &next.event {
            write!(std::io::stdout(), "{text}")?;
        }
        if let AgentEvent::End(end) = &next.event {
            writeln!(std::io::stdout(), "\n[ended with {}]", end.code)?;
        }
    }
    runtime.shutdown().await;
    Ok(())
}
