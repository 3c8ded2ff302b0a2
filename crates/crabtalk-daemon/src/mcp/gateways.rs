//! Connected components without tools, which name themselves in Hello.
//!
//! Invariant: a component is listed while its connection is open.

use crate::error::Error;
use crabtalk_domain::ComponentNews;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The source of such components in lists.
pub(crate) const SOURCE: &str = "hello";

/// The gateways of a node.
pub(crate) struct Gateways {
    present: Mutex<BTreeMap<u64, Gateway>>,
    news: mpsc::Sender<ComponentNews>,
}

/// A connected component without tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gateway {
    pub(crate) name: String,
    /// Name and version from the component's Hello.
    pub(crate) client: String,
    pub(crate) owner: String,
    pub(crate) since: Timestamp,
}

/// Keeps a gateway listed until it is dropped.
pub(crate) struct Present {
    gateways: Arc<Gateways>,
    number: u64,
}

impl Gateways {
    pub(crate) fn new(news: mpsc::Sender<ComponentNews>) -> Arc<Self> {
        Arc::new(Self {
            present: Mutex::default(),
            news,
        })
    }

    fn present(&self) -> MutexGuard<'_, BTreeMap<u64, Gateway>> {
        // Each change is complete within one line, so a panic leaves it consistent.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a gateway under the name from its Hello.
    pub(crate) fn enter(self: &Arc<Self>, client: &str, owner: &str) -> Result<Present, Error> {
        let name = client.split('/').next().unwrap_or_default();
        if !crabtalk_config::is_name(name) {
            return Err(Error::Invalid(format!(
                "{client:?} is not a component's name: use NAME or NAME/VERSION"
            )));
        }
        let number = {
            let mut present = self.present();
            let number = present.last_key_value().map_or(0, |(last, _)| last + 1);
            let gateway = Gateway {
                name: name.to_owned(),
                client: crabtalk_proto::visible(client).into_owned(),
                owner: owner.to_owned(),
                since: Timestamp::now(),
            };
            present.insert(number, gateway);
            number
        };
        self.announce(
            name,
            "connected",
            format!("{name} is connected and offers no tools"),
        );
        Ok(Present {
            gateways: Arc::clone(self),
            number,
        })
    }

    fn announce(&self, name: &str, state: &str, said: String) {
        tracing::info!(component = %name, state, "a component without tools");
        let _ = self.news.try_send(ComponentNews {
            name: name.to_owned(),
            source: SOURCE.to_owned(),
            state: state.to_owned(),
            error: String::new(),
            tools: 0,
            said,
        });
    }

    pub(crate) fn list(&self) -> Vec<Gateway> {
        self.present().values().cloned().collect()
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let gone = self.gateways.present().remove(&self.number);
        if let Some(Gateway { name, .. }) = gone {
            self.gateways
                .announce(&name, "off", format!("{name} has disconnected"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_is_listed_while_connected() {
        let gateways = Gateways::new(mpsc::channel(8).0);
        let one = gateways.enter("webhook/1.2", "this user").unwrap();
        let [listed] = &gateways.list()[..] else {
            panic!()
        };
        assert_eq!((&*listed.name, &*listed.client), ("webhook", "webhook/1.2"));
        drop(one);
        assert!(gateways.list().is_empty());
        for name in ["", "../x", "/1", "a b"] {
            assert!(gateways.enter(name, "").is_err(), "{name}");
        }
    }
}
