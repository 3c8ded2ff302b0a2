//! `subscriptions` and `publish`: runs started by events.

use super::Context;
use crate::args::{Publish, Subscriptions};
use crate::error::Error;
use crate::stdin;
use crate::text::summary;
use crabtalk_proto::{
    ListSubscriptionsMsg, PublishEventMsg, SubscribeEventMsg, SubscriptionInfo,
    UnsubscribeEventMsg, visible,
};
use serde_json::json;

pub(super) async fn run(context: &mut Context, command: Subscriptions) -> Result<(), Error> {
    match command {
        Subscriptions::List => list(context).await,
        Subscriptions::Add {
            source,
            once,
            prompt,
        } => add(context, source, once, prompt).await,
        Subscriptions::Rm { id } => {
            let request = UnsubscribeEventMsg { id };
            context.call(request).await?;
            let said = format!("crabtalk: removed subscription {id}");
            context.done(json!({"removed": id}), &said)
        }
    }
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let request = ListSubscriptionsMsg {};
    let listed = context.call(request).await?;
    for problem in &listed.problems {
        context.problem(&format!("crabtalk: not active: {}", visible(problem)))?;
    }
    let none = match listed.problems.is_empty() {
        true => "no subscriptions; add one with `crabtalk subscriptions add SOURCE`",
        false => "no subscriptions are active until this file is fixed",
    };
    context.entries(&listed.subscriptions, |_, one| entry(one), none)
}

/// A subscription in one line.
fn entry(subscription: &SubscriptionInfo) -> String {
    let mut text = format!(
        "{}  {} runs {}",
        subscription.id,
        visible(&subscription.source),
        visible(&subscription.target_agent),
    );
    if subscription.once {
        text.push_str(", once");
    }
    if !subscription.prompt.is_empty() {
        text.push_str(&format!(": {}", summary(&subscription.prompt)));
    }
    if subscription.fired + subscription.failed > 0 {
        let (fired, failed) = (subscription.fired, subscription.failed);
        text.push_str(&format!("; {fired} started, {failed} failed"));
        let last = summary(&subscription.last_outcome);
        text.push_str(&format!(", the last: {last}"));
    }
    if subscription.dropped > 0 {
        text.push_str(&format!("; {} left out", subscription.dropped));
    }
    text
}

async fn add(
    context: &mut Context,
    source: String,
    once: bool,
    prompt: String,
) -> Result<(), Error> {
    let request = SubscribeEventMsg {
        source,
        // The agent of the command line; empty means the default agent.
        target_agent: context.global.agent.clone().unwrap_or_default(),
        once,
        prompt,
    };
    let made = context.call(request).await?;
    context.print(&made, &entry(&made))
}

/// Handles `publish`.
pub(super) async fn publish(context: &mut Context, args: Publish) -> Result<(), Error> {
    let piped = stdin::piped(args.no_stdin)?;
    let request = PublishEventMsg {
        source: args.source.clone(),
        payload: stdin::append(&args.payload.join(" "), &piped),
    };
    // An older daemon does not report it.
    let matched = context.call(request).await?.matched;
    let mut said = format!("crabtalk: published {}", visible(&args.source));
    if matched == Some(0) {
        said.push_str(", and no subscription matches it; see `crabtalk subscriptions`");
    }
    context.done(json!({"published": args.source, "matched": matched}), &said)
}
