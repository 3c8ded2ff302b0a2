//! Prints answers and entries as text.

use super::Failed;
use crate::journal;
use crate::name::Name;
use crate::world::{Answer, Entry, Task, TaskState};
use std::io::{self, Write};
use std::path::Path;

/// Maximum number of an agent's last actions that `explain` shows.
const LAST_ACTS: usize = 10;

/// Maximum number of entries in a chain of causes.
const MAX_CHAIN: usize = 50;

pub(super) fn json(answer: &Answer) -> Result<(), Failed> {
    let mut out = io::stdout();
    if let Answer::Refused { why } = answer {
        return Err(Failed(1, why.clone()));
    }
    serde_json::to_writer(&mut out, answer)?;
    Ok(writeln!(out)?)
}

pub(super) fn answer(answer: Answer) -> Result<(), Failed> {
    let mut out = io::stdout();
    match answer {
        Answer::Done { said } => writeln!(out, "{said}")?,
        Answer::Refused { why } => return Err(Failed(1, why)),
        Answer::Look { text, .. } => writeln!(out, "{}", visible(&text))?,
        Answer::Status {
            agents,
            inbox,
            tasks,
        }
        | Answer::Board {
            agents,
            inbox,
            tasks,
            ..
        } => {
            for agent in agents {
                let percent = agent.percent.map(|percent| format!("{percent} %"));
                let flags = agent.flags.join(", ");
                let note = match agent.waits_for.as_str() {
                    "" => agent.note.clone(),
                    waits if agent.note.is_empty() => format!("waits for {waits}"),
                    waits => format!("waits for {waits} ({})", agent.note),
                };
                let line = format!(
                    "{:<16} {:<15} {:>8}  mail {:<3} {:<6} {} {}",
                    agent.name.as_str(),
                    agent.state.to_string(),
                    duration(agent.for_ms),
                    agent.queue,
                    percent.unwrap_or_default(),
                    flags,
                    note,
                );
                writeln!(out, "{}", visible(line.trim_end()))?;
            }
            writeln!(out, "{inbox} messages for ADMIN, {tasks} tasks to do")?;
        }
        Answer::Tasks { tasks } => {
            for (id, task) in tasks {
                let to = task.to.map_or_else(|| "@ANY".into(), |to| format!("@{to}"));
                let state = match task.state {
                    TaskState::Open => "open".to_owned(),
                    TaskState::Assigned { agent, .. } => format!("assigned to {agent}"),
                    TaskState::Done { agent, answer, .. } => {
                        format!("done by {agent}: {}", first_line(&answer))
                    }
                };
                let body = first_line(&task.body);
                let line = format!("t{id} {to} [{}] {body} - {state}", task.topic);
                writeln!(out, "{}", visible(&line))?;
            }
        }
        Answer::Inbox { letters } => {
            for (id, mail) in letters {
                let at = journal::time(mail.at);
                writeln!(out, "m{id} {at}\n{}\n", visible(&mail.text()))?;
            }
        }
    }
    Ok(())
}

/// Prints a task with its whole text.
pub(super) fn task(id: u64, task: &Task) -> Result<(), Failed> {
    let to = task.to.as_ref().map_or("ANY", Name::as_str);
    let added = journal::time(task.at);
    let mut text = format!(
        "t{id} @{to} [{}], added {added}\n{}\n",
        task.topic, task.body
    );
    text.push_str(&match &task.state {
        TaskState::Open => "open".to_owned(),
        TaskState::Assigned { agent, at, .. } => {
            format!("assigned to {agent}, {}", journal::time(*at))
        }
        TaskState::Done { agent, at, answer } => {
            format!("done by {agent}, {}\n{answer}", journal::time(*at))
        }
    });
    Ok(writeln!(io::stdout(), "{}", visible(&text))?)
}

/// Formats an entry in one line.
pub(super) fn entry(entry: &Entry) -> String {
    let agent = entry.agent.as_ref().map_or("", Name::as_str);
    let mut line = format!("{} #{} {agent}", journal::time(entry.at), entry.n);
    if let (Some(from), Some(to)) = (entry.from, entry.to) {
        line.push_str(&format!(" {from} → {to}"));
    }
    line.push_str(&format!(": {}", first_line(&entry.why)));
    if !entry.did.is_empty() {
        line.push_str(&format!(" ⇒ {}", entry.did.join("; ")));
    }
    visible(&line)
}

/// Formats an entry with all its details.
pub(super) fn explained(entry: &Entry) -> String {
    let agent = entry.agent.as_ref().map_or("", Name::as_str);
    let mut text = format!("#{} {} {agent}\n", entry.n, journal::time(entry.at));
    text.push_str(&format!("  because: {}\n", entry.why));
    if let Some(evidence) = &entry.evidence {
        text.push_str(&format!(
            "  evidence: {:?}: {}\n",
            evidence.source, evidence.detail
        ));
    }
    if let Some(cause) = entry.cause {
        text.push_str(&format!("  cause: #{cause}\n"));
    }
    if let (Some(from), Some(to)) = (entry.from, entry.to) {
        text.push_str(&format!("  state: {from} → {to}\n"));
    }
    for did in &entry.did {
        text.push_str(&format!("  did: {did}\n"));
    }
    visible(&text)
}

/// An entry and its causes, the first cause first.
pub(super) fn chain(folder: &Path, n: u64) -> Result<Vec<Entry>, Failed> {
    let mut wanted = Some(n);
    last(folder, MAX_CHAIN, |entry| {
        let is_it = wanted == Some(entry.n);
        if is_it {
            wanted = entry.cause;
        }
        is_it
    })
}

/// The last actions on an agent.
pub(super) fn last_acts(folder: &Path, name: &Name) -> Result<Vec<Entry>, Failed> {
    last(folder, LAST_ACTS, |entry| {
        let counts = !entry.did.is_empty() || entry.to.is_some();
        counts && entry.agent.as_ref() == Some(name)
    })
}

/// The last entries that match.
pub(super) fn last(
    folder: &Path,
    most: usize,
    mut wanted: impl FnMut(&Entry) -> bool,
) -> Result<Vec<Entry>, Failed> {
    let mut last = Vec::new();
    journal::entries(folder, |entry| {
        if last.len() < most && wanted(&entry) {
            last.push(entry);
        }
        last.len() < most
    })?;
    last.reverse();
    Ok(last)
}

fn first_line(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().into();
    line.chars().take(160).collect()
}

/// Escapes terminal control characters.
pub(super) fn visible(text: &str) -> String {
    crabtalk_client::visible_prose(text).into_owned()
}

fn duration(ms: u64) -> String {
    let secs = ms / 1000;
    match secs {
        0..60 => format!("{secs} s"),
        60..3600 => format!("{} min", secs / 60),
        _ => format!("{} h {} min", secs / 3600, secs / 60 % 60),
    }
}
