//! `asks`, `reply`, `approve`, `deny`: what runs wait to be told.

use super::Context;
use crate::error::Error;
use crate::prompt::is_approval;
use crate::{json, text};
use crabtalk_proto::{Client, ListAsksMsg, PendingAsk, ReplyToAsk};
use serde_json::json;

pub(super) async fn list(context: &mut Context) -> Result<(), Error> {
    let asks = pending(context).await?;
    if context.global.json {
        for ask in &asks {
            context.console.screen.json(&json::pending_ask(ask))?;
        }
        return Ok(());
    }
    let rows = asks.iter().map(|pending| {
        let ask = pending.ask.clone().unwrap_or_default();
        let what = match (is_approval(&ask), ask.questions.first()) {
            (true, _) => format!("{} {}", ask.tool, ask.detail),
            (false, Some(question)) => question.question.clone(),
            (false, None) => String::new(),
        };
        vec![
            ask.ask_id.clone(),
            pending.agent.clone(),
            pending.sender.clone(),
            ask.kind.clone(),
            what,
        ]
    });
    let rows = rows.collect();
    context.print_table(
        &["id", "agent", "sender", "kind", "what"],
        rows,
        "nothing is waiting",
    )
}

pub(super) async fn reply(
    context: &mut Context,
    id: Option<String>,
    content: String,
) -> Result<(), Error> {
    answer(context, id, None, content).await
}

pub(super) async fn approve(
    context: &mut Context,
    id: Option<String>,
    always: bool,
) -> Result<(), Error> {
    let content = if always { "Allow always" } else { "Allow once" };
    answer(context, id, Some(true), content.to_owned()).await
}

pub(super) async fn deny(
    context: &mut Context,
    id: Option<String>,
    reason: Option<String>,
) -> Result<(), Error> {
    let content = match reason {
        Some(reason) => format!("Deny: {reason}"),
        None => "Deny".to_owned(),
    };
    answer(context, id, Some(true), content).await
}

/// Pending asks of the agent and sender of the command line.
async fn pending(context: &mut Context) -> Result<Vec<PendingAsk>, Error> {
    let request = ListAsksMsg {
        agent: context.global.agent.clone(),
        sender: context.global.sender.clone(),
    };
    Ok(context.connection().await?.list_asks(request).await?.asks)
}

/// Answers one ask: the named one, or the only one of its kind.
async fn answer(
    context: &mut Context,
    id: Option<String>,
    approval: Option<bool>,
    content: String,
) -> Result<(), Error> {
    let asks = pending(context).await?;
    let (found, id) = choose(&asks, id.as_deref(), approval)?;
    let request = ReplyToAsk {
        agent: found.agent.clone(),
        sender: found.sender.clone(),
        content: content.clone(),
        ask_id: Some(id.to_owned()),
    };
    context.connection().await?.reply_to_ask(request).await?;
    let said = format!(
        "crabtalk: answered {id} of {} and {}: {content}",
        found.agent, found.sender
    );
    context.done(json!({"ask_id": id, "answer": content}), &said)
}

fn choose<'a>(
    asks: &'a [PendingAsk],
    id: Option<&str>,
    approval: Option<bool>,
) -> Result<(&'a PendingAsk, &'a str), Error> {
    let mut fitting = asks
        .iter()
        .filter_map(|pending| Some((pending, pending.ask.as_ref()?)))
        .filter(|(_, ask)| match id {
            Some(id) => ask.ask_id == id,
            None => approval.is_none_or(|approval| is_approval(ask) == approval),
        })
        .map(|(pending, ask)| (pending, ask.ask_id.as_str()))
        .collect::<Vec<_>>();
    let ids = || {
        let ids = fitting
            .iter()
            .map(|(_, id)| text::summary(id))
            .collect::<Vec<_>>();
        ids.join(", ")
    };
    match (fitting.len(), id) {
        (1, _) => Ok(fitting.remove(0)),
        (0, Some(id)) => Err(Error::Failed(format!(
            "nothing waits under {id}; see `crabtalk asks`"
        ))),
        (0, None) => Err(Error::Failed("nothing is waiting for an answer".to_owned())),
        _ => Err(Error::Usage(format!(
            "several are waiting, name one: {}",
            ids()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::AskUserEvent;

    fn ask(id: &str, kind: &str) -> PendingAsk {
        PendingAsk {
            ask: Some(AskUserEvent {
                ask_id: id.into(),
                kind: kind.into(),
                ..AskUserEvent::default()
            }),
            ..PendingAsk::default()
        }
    }

    #[test]
    fn an_ask_is_chosen_by_id_or_by_being_the_only_one() {
        let asks = [
            ask("a1", "approval"),
            ask("q1", "question"),
            ask("q2", "question"),
        ];
        let chosen = |id, approval| match choose(&asks, id, approval) {
            Ok((_, id)) => id.to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(chosen(None, Some(true)), "a1");
        assert_eq!(chosen(Some("q2"), None), "q2");
        assert_eq!(
            chosen(None, None),
            "several are waiting, name one: a1, q1, q2"
        );
        assert_eq!(
            chosen(Some("x"), None),
            "nothing waits under x; see `crabtalk asks`"
        );
        assert_eq!(
            choose(&[], None, None).unwrap_err().to_string(),
            "nothing is waiting for an answer"
        );
    }
}
