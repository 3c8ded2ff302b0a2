//! The exact messages of NEXUS, and the answers that it recognises.
//!
//! Invariant: the three messages of the session flow are exactly those that the
//! protocols in `gov/` tell agents to expect.

use crate::backend::Prompt;
use crate::name::{Name, Topic};

/// The protocol that BOOTSTRAP names.
pub const COMPRESSION_PROTOCOL: &str = "gov/context_compression_protocol.md";

/// The protocol that REFLECTION and COMPRESSION name.
pub const CONSOLIDATION_PROTOCOL: &str = "gov/context_consolidation_protocol.md";

/// `BOOTSTRAP`.
pub fn bootstrap_topic() -> Topic {
    Topic::own("BOOTSTRAP")
}

/// `REFLECTION`.
pub fn reflection_topic() -> Topic {
    Topic::own("REFLECTION")
}

/// `COMPRESSION`.
pub fn compression_topic() -> Topic {
    Topic::own("COMPRESSION")
}

/// `FORMAT`.
pub fn format_topic() -> Topic {
    Topic::own("FORMAT")
}

/// The report that ADMIN's mailbox is full.
pub fn inbox_is_full() -> (Topic, String) {
    let text = "your mailbox is full: further messages are only in the log (`crabtalk nexus log`) \
                until you read it";
    (Topic::own("INBOX"), text.into())
}

/// The text of BOOTSTRAP. Its `@file` is in the middle, so that a completion does not
/// consume the Enter.
pub fn bootstrap(agent: &Name) -> String {
    format!(
        "@{COMPRESSION_PROTOCOL} completed for @{agent}.md agent - please reload all relevant \
         agent context for continuation"
    )
}

pub fn reflection() -> String {
    format!(
        "No active work detected. Please perform context consolidation per \
         @{CONSOLIDATION_PROTOCOL}"
    )
}

/// The text of the notice of COMPRESSION.
pub fn compression() -> String {
    format!(
        "External compression scheduled. Please consolidate per @{CONSOLIDATION_PROTOCOL} and \
         confirm readiness."
    )
}

pub fn reminder() -> String {
    "External compression is still scheduled. Please commit your changes and confirm: Context \
     consolidated. Changes committed. Ready for compression."
        .into()
}

/// The reason why a claim of readiness is refused.
pub fn not_ready(why: &str) -> String {
    format!(
        "Not ready for compression: {why}. Please fix that and confirm again: Context \
         consolidated. Changes committed. Ready for compression."
    )
}

/// The report that a compression was cancelled.
pub fn called_off() -> String {
    "The compression is cancelled. Please carry on. One line is enough as an answer.".into()
}

/// The correction of an invalid output.
pub fn correction(agent: &Name, what: &str, line: &str) -> String {
    format!(
        "Your last output was not delivered: {what}. It begins: {}. Please send it again in this \
         form, from the beginning of a line: @{agent} → @RECIPIENT [TOPIC]: message",
        quoted(line)
    )
}

/// The text for an agent whose session was interrupted after a message.
pub fn carry_on(from: &Name) -> String {
    format!(
        "Your session was interrupted while you worked on the message from @{from} above. Please \
         carry on with it and answer it."
    )
}

/// The reminder for an idle agent with an open task.
pub fn task_reminder() -> String {
    "This task is still open. Please carry on, or end it with a message to @NEXUS under its topic \
     that begins with `DONE: ` and the result, or with `FAILED: ` and the reason."
        .into()
}

/// The report to an agent whose task ADMIN reassigned or ended.
pub fn task_taken() -> String {
    "This task was given to another agent or closed. Please stop working on it. One line is enough \
     as an answer."
        .into()
}

/// Whether an answer ends a task: its first word is `DONE` or `FAILED`.
pub fn ends_task(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let first = words.find(|word| !word.is_empty()).unwrap_or_default();
    ["done", "failed"].contains(&first.to_lowercase().as_str())
}

/// Whether an answer to BOOTSTRAP confirms the identity.
pub fn confirms_identity(text: &str) -> bool {
    format!(" {} ", words(text)).contains(" identity confirmed ")
}

/// Whether an answer to the notice claims readiness.
pub fn is_ready(text: &str) -> bool {
    let words = format!(" {} ", words(text));
    words.contains(" ready for compression ") && !words.contains(" not ready for compression ")
}

/// The words of a text in lower case, without punctuation.
fn words(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric();
    let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Quotes a line, shortened to 200 characters.
fn quoted(line: &str) -> String {
    let line: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("\"{}\"", line.trim())
}

/// The error for an unknown name, with the names of the team.
pub fn nobody<'a>(name: &Name, team: impl Iterator<Item = &'a Name>) -> String {
    let names: Vec<&str> = team.map(Name::as_str).collect();
    format!("no agent {name}; the team: {}", names.join(", "))
}

/// Explains to ADMIN how to answer a prompt of an agent.
pub fn how_to_answer(agent: &str, prompt: &Prompt) -> String {
    let approve = format!("`crabtalk nexus approve {agent}");
    let deny = format!("`crabtalk nexus deny {agent}`");
    if prompt.is_question {
        let options = match prompt.options.is_empty() {
            true => String::new(),
            false => format!(" ({})", prompt.options.join(", ")),
        };
        return format!("{approve} \"your answer\"`{options} or {deny}");
    }
    let always = match prompt.always.is_empty() {
        true => String::new(),
        false => format!(", {approve} --always` for {}", prompt.always),
    };
    format!("{approve}`{always} or {deny}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{Header, Message, Priority};

    fn line(topic: Topic, body: &str) -> String {
        let header = Header {
            from: Name::nexus(),
            to: vec![Name::new("builder").unwrap()],
            topic: Some(topic),
            priority: Priority::Normal,
        };
        Message::new(header, body).to_string()
    }

    #[test]
    fn session_flow_has_exact_lines() {
        let builder = Name::new("builder").unwrap();
        for (topic, text, exact) in [
            (
                bootstrap_topic(),
                bootstrap(&builder),
                "[BOOTSTRAP]: @gov/context_compression_protocol.md completed for @BUILDER.md agent \
                 - please reload all relevant agent context for continuation",
            ),
            (
                reflection_topic(),
                reflection(),
                "[REFLECTION]: No active work detected. Please perform context consolidation per \
                 @gov/context_consolidation_protocol.md",
            ),
            (
                compression_topic(),
                compression(),
                "[COMPRESSION]: External compression scheduled. Please consolidate per \
                 @gov/context_consolidation_protocol.md and confirm readiness.",
            ),
        ] {
            assert_eq!(line(topic, &text), format!("@NEXUS → @BUILDER {exact}"));
        }
    }

    #[test]
    fn identity_and_readiness_ignore_case_and_punctuation() {
        assert!(confirms_identity(
            "Identity confirmed. Context loaded. All well"
        ));
        assert!(confirms_identity("IDENTITY: confirmed!"));
        assert!(!confirms_identity("identity not confirmed"));
        assert!(is_ready(
            "Context consolidated. Changes committed. Ready for compression."
        ));
        assert!(!is_ready("I am not ready for compression"));
        assert!(!is_ready("compression is ready"));
    }

    #[test]
    fn tasks_end_by_their_first_word() {
        for (text, ends) in [
            ("DONE: tabs are accepted", true),
            ("done", true),
            ("**Failed**: no compiler", true),
            ("I begin now, will report when done", false),
            ("Not done yet", false),
            ("", false),
        ] {
            assert_eq!(ends_task(text), ends, "{text}");
        }
    }
}
