//! What runs of one agent have alike, held once: a thousand of them at a time
//! would hold a thousand prompts.

use crate::catalog::Catalog;
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
    tools: Option<Tools>,
}

/// The tools that an agent may use, and what that followed from.
#[derive(Debug)]
struct Tools {
    agent: Arc<AgentConfig>,
    catalog: Arc<Catalog>,
    offered: Vec<Arc<ToolSpec>>,
    allowed: Arc<Vec<Arc<ToolSpec>>>,
}

impl Tools {
    fn follow_from(
        &self,
        agent: &Arc<AgentConfig>,
        catalog: &Arc<Catalog>,
        offered: &[Arc<ToolSpec>],
    ) -> bool {
        Arc::ptr_eq(&self.agent, agent)
            && Arc::ptr_eq(&self.catalog, catalog)
            && are(&self.offered, offered, Arc::ptr_eq)
    }
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

    /// The tools that an agent may use of those that are `offered`; `allowed`
    /// finds them out, where anything is new.
    pub(crate) fn tools(
        &self,
        agent: &Arc<AgentConfig>,
        catalog: &Arc<Catalog>,
        offered: Vec<Arc<ToolSpec>>,
        allowed: impl FnOnce(&[Arc<ToolSpec>]) -> Vec<Arc<ToolSpec>>,
    ) -> Arc<Vec<Arc<ToolSpec>>> {
        self.latest(&agent.name, |latest| {
            if let Some(known) = &latest.tools
                && known.follow_from(agent, catalog, &offered)
            {
                return Arc::clone(&known.allowed);
            }
            let new = allowed(&offered);
            let known = latest.tools.as_ref().map(|known| &known.allowed);
            let known = known.filter(|known| are(known, &new, |a, b| Arc::ptr_eq(a, b) || a == b));
            let allowed = known.map_or_else(|| new.into(), Arc::clone);
            latest.tools = Some(Tools {
                agent: Arc::clone(agent),
                catalog: Arc::clone(catalog),
                offered,
                allowed: Arc::clone(&allowed),
            });
            allowed
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

/// Whether two lists are the same by this measure.
fn are<T>(one: &[T], other: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b))
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
        let agent = |prompt: &str| Arc::new(AgentConfig::new(name.clone(), prompt));
        let (first, second) = (agent("brief"), agent("long"));
        let catalog = || Arc::new(Catalog::of((*first).clone()));
        let (one, another) = (catalog(), catalog());
        let offered = vec![spec("a"), spec("b")];
        let all = |offered: &[Arc<ToolSpec>]| offered.to_vec();
        let two = alike.tools(&first, &one, offered.clone(), all);
        let again = alike.tools(&first, &one, offered.clone(), |_| panic!("nothing is new"));
        assert!(Arc::ptr_eq(&two, &again));
        for (agent, catalog) in [(&second, &one), (&second, &another)] {
            let mut asked = false;
            let same = alike.tools(agent, catalog, offered.clone(), |offered| {
                asked = true;
                offered.iter().map(|tool| spec(&tool.name)).collect()
            });
            assert!(asked, "something is new");
            assert!(Arc::ptr_eq(&two, &same), "what came of it is not");
        }
        for other in [
            vec![],
            vec![spec("a")],
            vec![spec("a"), spec("c")],
            vec![spec("a"), spec("b"), spec("c")],
        ] {
            let now = alike.tools(&second, &another, other.clone(), all);
            assert_eq!(*now, other);
        }
    }
}
