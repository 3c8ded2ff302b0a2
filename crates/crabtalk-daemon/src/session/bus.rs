//! Requests about subscriptions (BUS-1).

use super::Session;
use crate::bus::Count;
use crate::error::Error;
use crabtalk_proto::*;
use crabtalk_triggers::bus::Subscription;

impl Session {
    pub(super) async fn subscribe(
        &self,
        request: SubscribeEventMsg,
    ) -> Result<SubscriptionInfo, Error> {
        let agent = match request.target_agent.as_str() {
            // The subscription keeps this agent if the default changes later.
            "" => self.node.config().default_agent.clone(),
            agent => agent.to_owned(),
        };
        let catalog = self.node.runtime.catalog();
        catalog.agent(&agent)?;
        drop(catalog);
        if !self.reaches(&agent, &format!("event:{}", request.source)) {
            return Err(Error::Forbidden(format!(
                "this token does not reach the sender \"event:{}\", as whom it would run",
                request.source
            )));
        }
        let bus = &self.node.bus;
        let SubscribeEventMsg {
            source,
            once,
            prompt,
            ..
        } = request;
        let made = bus.subscribe(source, agent, once, prompt).await?;
        Ok(info(made, Count::default()))
    }

    fn reaches_one(&self, one: &Subscription) -> bool {
        self.reaches(one.agent.as_str(), &format!("event:{}", one.source))
    }

    pub(super) async fn unsubscribe(&self, request: UnsubscribeEventMsg) -> Result<(), Error> {
        self.check_subscription(request.id).await?;
        self.node.bus.unsubscribe(request.id).await
    }

    pub(super) async fn publish(&self, request: PublishEventMsg) -> Result<Pong, Error> {
        let bus = &self.node.bus;
        let matched = bus.publish(request.source, request.payload).await?;
        Ok(Pong {
            matched: Some(matched),
        })
    }

    /// Treats a subscription beyond reach as absent.
    async fn check_subscription(&self, id: u64) -> Result<(), Error> {
        if self.reaches_everything() {
            return Ok(());
        }
        let listed = self.node.bus.list().await?;
        let found = listed.iter().find(|(one, _)| one.id == id);
        match found.is_some_and(|(one, _)| self.reaches_one(one)) {
            true => Ok(()),
            false => Err(Error::NotFound(format!("subscription {id} does not exist"))),
        }
    }

    pub(super) async fn subscriptions(
        &self,
        _: ListSubscriptionsMsg,
    ) -> Result<SubscriptionList, Error> {
        let listed = self.node.bus.list().await?;
        let reached = listed.into_iter().filter(|(one, _)| self.reaches_one(one));
        let listed = reached.map(|(one, count)| {
            let mut info = info(one, count);
            if !self.reaches_everything() {
                info.by.clear();
            }
            info
        });
        let problems = match self.reaches_everything() {
            true => self.node.bus.problems().await?,
            false => Vec::new(),
        };
        Ok(SubscriptionList {
            subscriptions: listed.collect(),
            problems,
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
        prompt: subscription.prompt,
    }
}
