//! What runs of one agent have alike, held once: a thousand of them at a time
//! would hold a thousand prompts.

use crabtalk_domain::tool::ToolSpec;
use crabtalk_domain::{AgentConfig, AgentName};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Agents that are remembered, far more than speak at a time.
const MAX_AGENTS: usize = 256;

/// The latest of everything, by agent.
#[derive(Debug, Default)]
pub(crate) struct Alike(Mutex<HashMap<AgentName, Latest>>);

#[derive(Debug, Default)]
struct Latest {
    agent: Option<Arc<AgentConfig>>,
    system: Option<Arc<str>>,
    tools: Option<Arc<Vec<Arc<ToolSpec>>>>,
}

impl Alike {
    /// An agent as its runs know it.
    pub(crate) fn agent(&self, agent: AgentConfig) -> Arc<AgentConfig> {
        let name = agent.name.clone();
        self.latest(&name, |latest| same(&mut latest.agent, agent))
    }

    /// A system prompt of an agent's.
    pub(crate) fn system(&self, name: &AgentName, system: String) -> Arc<str> {
        self.latest(name, |latest| same(&mut latest.system, system))
    }

    /// The tools that an agent may use.
    pub(crate) fn tools(
        &self,
        name: &AgentName,
        tools: Vec<Arc<ToolSpec>>,
    ) -> Arc<Vec<Arc<ToolSpec>>> {
        self.latest(name, |latest| {
            let mut known = latest.tools.as_ref().into_iter().flat_map(|tools| &**tools);
            // Nearly all are the very same and need no comparing.
            let same = |tool: &Arc<ToolSpec>| {
                let known = known.next();
                known.is_some_and(|known| Arc::ptr_eq(known, tool) || known == tool)
            };
            let same = tools.iter().all(same) && known.next().is_none();
            match latest.tools.as_ref().filter(|_| same) {
                Some(known) => Arc::clone(known),
                None => Arc::clone(latest.tools.insert(tools.into())),
            }
        })
    }

    fn latest<T>(&self, name: &AgentName, take: impl FnOnce(&mut Latest) -> T) -> T {
        let mut agents = self.lock();
        if agents.len() >= MAX_AGENTS && !agents.contains_key(name) {
            agents.clear();
        }
        take(agents.entry(name.clone()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentName, Latest>> {
        // Whatever is remembered is whole, so a panic elsewhere spoils nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is remembered if it is the same, else the new, remembered.
fn same<T, N>(latest: &mut Option<Arc<T>>, new: N) -> Arc<T>
where
    T: PartialEq + ?Sized,
    N: Borrow<T> + Into<Arc<T>>,
{
    if let Some(latest) = latest.as_ref().filter(|latest| ***latest == *new.borrow()) {
        return Arc::clone(latest);
    }
    Arc::clone(latest.insert(new.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_held_once() {
        let alike = Alike::default();
        let name = AgentName::new("crab").expect("a name");
        let first = alike.system(&name, "brief".into());
        assert!(Arc::ptr_eq(&first, &alike.system(&name, "brief".into())));
        let other = alike.system(&name, "long".into());
        assert_eq!((&*first, &*other), ("brief", "long"));
        assert!(Arc::ptr_eq(&other, &alike.system(&name, "long".into())));
        let spec = |name: &str| {
            Arc::new(ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: serde_json::json!({}),
                default_permission: crabtalk_domain::Permission::Allow,
            })
        };
        let two = alike.tools(&name, vec![spec("a"), spec("b")]);
        assert!(Arc::ptr_eq(
            &two,
            &alike.tools(&name, vec![spec("a"), spec("b")])
        ));
        for other in [
            vec![],
            vec![spec("a")],
            vec![spec("a"), spec("b"), spec("c")],
        ] {
            assert_eq!(alike.tools(&name, other.clone()).len(), other.len());
        }
    }
}
