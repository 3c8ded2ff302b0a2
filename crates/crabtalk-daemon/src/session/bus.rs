//! Subscriptions by protocol (BUS-1).

use super::Session;
use crate::bus::Count;
use crabtalk_bus::Subscription;
use crabtalk_proto::*;

impl Session {
    pub(super) async fn subscribe(
        &self,
        request: SubscribeEventMsg,
    ) -> Result<SubscriptionInfo, Status> {
        let agent = match request.target_agent.as_str() {
            // Which one that is may change later: the subscription keeps this one.
            "" => self.node.config().default_agent.clone(),
            agent => agent.to_owned(),
        };
        let catalog = self.node.runtime().catalog();
        catalog.agent(&agent).map_err(|e| super::status(&e))?;
        drop(catalog);
        let bus = self.node.bus();
        let made = bus.subscribe(request.source, agent, request.once).await?;
        Ok(info(made, Count::default()))
    }

    pub(super) async fn subscriptions(&self) -> Result<SubscriptionList, Status> {
        let listed = self.node.bus().list().await?;
        let listed = listed.into_iter().map(|(one, count)| info(one, count));
        Ok(SubscriptionList {
            subscriptions: listed.collect(),
        })
    }
}

fn info(subscription: Subscription, count: Count) -> SubscriptionInfo {
    SubscriptionInfo {
        id: subscription.id,
        source: subscription.source,
        target_agent: subscription.agent.to_string(),
        once: subscription.once,
        by: subscription.by,
        fired: count.fired,
        failed: count.failed,
        dropped: count.dropped,
        last_outcome: count.last,
    }
}
