//! Components that offer no tools: who said on its connection that it is one, and
//! is still there.
//!
//! Invariant: one is on the list for as long as its connection stands, and no longer.

use super::News;
use crabtalk_domain::ComponentNews;
use crabtalk_proto::{ComponentInfo, Status};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More than a machine has; beyond it a gateway works and is not listed.
const MAX_GATEWAYS: usize = 256;

/// Where the daemon knows them from.
const SOURCE: &str = "hello";

/// The gateways of a node.
pub(crate) struct Gateways {
    all: Mutex<All>,
    news: Arc<News>,
}

#[derive(Default)]
struct All {
    next: u64,
    present: BTreeMap<u64, Gateway>,
}

struct Gateway {
    name: String,
    /// Name and version by its own account.
    client: String,
    owner: String,
    since: Timestamp,
}

/// One of them; it is gone when this is dropped.
pub(crate) struct Present {
    gateways: Arc<Gateways>,
    number: u64,
}

impl Gateways {
    pub(crate) fn new(news: Arc<News>) -> Arc<Self> {
        Arc::new(Self {
            all: Mutex::default(),
            news,
        })
    }

    fn all(&self) -> MutexGuard<'_, All> {
        // Whole after each line, so a panic spoils nothing.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one onto the list, by what it calls itself.
    pub(crate) fn enter(self: &Arc<Self>, client: &str, owner: &str) -> Result<Present, Status> {
        let name = client.split('/').next().unwrap_or_default();
        if !crabtalk_config::is_name(name) {
            return Err(Status::bad_request(format!(
                "{client:?} is no component's name, with or without a version behind a /"
            )));
        }
        let number = {
            let mut all = self.all();
            if all.present.len() >= MAX_GATEWAYS {
                let said = format!("there are {MAX_GATEWAYS} components without tools already");
                return Err(Status::too_many(said));
            }
            let number = all.next;
            all.next += 1;
            let gateway = Gateway {
                name: name.to_owned(),
                client: crabtalk_proto::visible(client).into_owned(),
                owner: owner.to_owned(),
                since: Timestamp::now(),
            };
            all.present.insert(number, gateway);
            number
        };
        self.tell(name, "connected");
        Ok(Present {
            gateways: Arc::clone(self),
            number,
        })
    }

    fn tell(&self, name: &str, state: &str) {
        tracing::info!(component = %name, state, "a component without tools");
        let said = match state {
            "connected" => format!("{name} is connected, and offers no tools"),
            _ => format!("{name} is gone"),
        };
        self.news.put(ComponentNews {
            name: name.to_owned(),
            source: SOURCE.to_owned(),
            state: state.to_owned(),
            error: String::new(),
            tools: 0,
            said,
        });
    }

    pub(crate) fn list(&self) -> Vec<ComponentInfo> {
        let all = self.all();
        let info = |gateway: &Gateway| ComponentInfo {
            name: gateway.name.clone(),
            source: SOURCE.into(),
            transport: "connection".into(),
            owner: gateway.owner.clone(),
            state: "connected".into(),
            server: gateway.client.clone(),
            since: crabtalk_domain::stamp(gateway.since),
            connected: 1,
            ..ComponentInfo::default()
        };
        all.present.values().map(info).collect()
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let gone = self.gateways.all().present.remove(&self.number);
        if let Some(gone) = gone {
            self.gateways.tell(&gone.name, "off");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_listed_for_as_long_as_it_is_there() {
        let gateways = Gateways::new(Arc::default());
        let one = gateways.enter("webhook/1.2", "this user").unwrap();
        let listed = gateways.list();
        assert_eq!(listed.len(), 1);
        let [info] = &listed[..] else { panic!() };
        assert_eq!(
            (info.name.as_str(), info.server.as_str()),
            ("webhook", "webhook/1.2")
        );
        drop(one);
        assert!(gateways.list().is_empty());
        for name in ["", "../x", "/1", "a b"] {
            assert!(gateways.enter(name, "").is_err(), "{name}");
        }
        let all: Vec<_> = (0..MAX_GATEWAYS)
            .map(|_| gateways.enter("x", "").unwrap())
            .collect();
        assert_eq!(gateways.enter("x", "").err().unwrap().code, 429);
        drop(all);
        assert!(gateways.enter("x", "").is_ok());
    }
}
