//! `asks`, `reply`, `approve`, `deny`: pending questions and approvals.

use super::Context;
use crate::error::Error;
use crate::follow::SETTLE;
use crate::prompt::{Answer, is_approval, offered, pages, question_text, wanted};
use crate::terminal::Terminal;
use crate::text;
use crabtalk_proto::{ListAsksMsg, PendingAsk, ReplyToAsk, visible};
use serde_json::json;

pub(super) async fn list(context: &mut Context) -> Result<(), Error> {
    let asks = pending(context).await?;
    let words = |context: &Context, one: &PendingAsk| entry(one, &context.when(&one.asked_at));
    context.entries(&asks, words, "no pending questions or approvals")
}

/// Formats an ask in full.
fn entry(pending: &PendingAsk, asked: &str) -> String {
    let ask = pending.ask.clone().unwrap_or_default();
    let agent = visible(&pending.agent);
    let mut text = format!(
        "{}  {}  {agent} for {}  {}\n",
        visible(&ask.ask_id),
        visible(&ask.kind),
        visible(&pending.sender),
        visible(asked)
    );
    if is_approval(&ask) {
        text.push_str(&wanted(&ask, &agent));
    } else {
        let questions = ask.questions.iter();
        questions.for_each(|q| text.push_str(&question_text(q, &agent)));
    }
    text.trim_end().to_owned()
}

/// Approves one call after showing everything that the approval allows.
pub(super) async fn approve(
    context: &mut Context,
    id: Option<String>,
    answer: Answer,
    yes: bool,
) -> Result<(), Error> {
    let asks = pending(context).await?;
    let (found, named) = choose(&asks, id.as_deref(), Some(true))?;
    let ask = found.ask.clone().unwrap_or_default();
    if !is_approval(&ask) {
        return Err(Error::Usage(format!(
            "{named} is a question; `crabtalk reply --id {named} ANSWER` answers it"
        )));
    }
    if !offered(&ask).contains(&answer) {
        return Err(Error::Failed(format!(
            "{named} does not offer \"{}\"; `crabtalk approve {named}` allows it once",
            answer.label()
        )));
    }
    let shown = wanted(&ask, &found.agent);
    let how = match answer {
        Answer::Once | Answer::Deny => "once",
        Answer::Always => "from now on",
        Answer::Prefix => "from now on, by its prefix",
        Answer::Conversation => "for this conversation",
    };
    match context.console.terminal.as_mut().filter(|_| !yes) {
        Some(terminal) => {
            let question = format!("Allow it {how}? [y]es, [n]o > ");
            if !confirmed(&mut **terminal, &shown, &question).await? {
                return Err(Error::Failed(format!(
                    "not answered; {named} is still pending"
                )));
            }
        }
        None => context.console.screen.note(&shown)?,
    }
    send(context, found, named, answer.label().to_owned()).await
}

/// Shows a text page by page and asks for confirmation; earlier input is ignored.
pub(super) async fn confirmed(
    terminal: &mut dyn Terminal,
    text: &str,
    question: &str,
) -> Result<bool, Error> {
    let failed = |e| Error::io("ask at the terminal", &e);
    let pages = pages(text, terminal.size());
    let last = pages.len();
    for (page, number) in pages.iter().zip(1..) {
        terminal.show(page).map_err(failed)?;
        tokio::time::sleep(SETTLE).await;
        terminal.forget();
        let more = "Enter shows more, n ends this > ";
        let prompt = if number == last { question } else { more };
        terminal.show(prompt).map_err(failed)?;
        let Some(line) = terminal.line().await.map_err(failed)? else {
            return Ok(false);
        };
        let line = line.trim().to_lowercase();
        if number == last {
            return Ok(line == "y" || line == "yes");
        }
        if !line.is_empty() {
            return Ok(false);
        }
    }
    Ok(false)
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
        sender: Some(context.named_sender()).filter(|sender| !sender.is_empty()),
    };
    Ok(context.call(request).await?.asks)
}

/// Answers one ask: the given one, or the only one of its kind.
pub(super) async fn answer(
    context: &mut Context,
    id: Option<String>,
    approval: Option<bool>,
    content: String,
) -> Result<(), Error> {
    let asks = pending(context).await?;
    let (found, id) = choose(&asks, id.as_deref(), approval)?;
    send(context, found, id, content).await
}

async fn send(
    context: &mut Context,
    found: &PendingAsk,
    id: &str,
    content: String,
) -> Result<(), Error> {
    let request = ReplyToAsk {
        agent: found.agent.clone(),
        sender: found.sender.clone(),
        content: content.clone(),
        ask_id: Some(id.to_owned()),
    };
    context.call(request).await?;
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
            "no pending ask {id}; see `crabtalk asks`"
        ))),
        (0, None) => Err(Error::Failed(
            "no pending questions or approvals".to_owned(),
        )),
        _ => Err(Error::Usage(format!(
            "several are pending, name one: {}",
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
    fn ask_is_chosen_by_id_or_as_the_only_one() {
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
            "several are pending, name one: a1, q1, q2"
        );
        assert_eq!(
            chosen(Some("x"), None),
            "no pending ask x; see `crabtalk asks`"
        );
        assert_eq!(
            choose(&[], None, None).unwrap_err().to_string(),
            "no pending questions or approvals"
        );
    }
}
