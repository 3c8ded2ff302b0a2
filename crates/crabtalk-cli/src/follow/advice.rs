//! What to write so that a denied call is allowed.
//!
//! Invariant: text that is offered for pasting was read back first, and says
//! what was there before and the rule.

use crabtalk_config::{AgentFile, Permission};
use crabtalk_proto::{AskUserEvent, visible};
use std::path::Path;

/// What stands for itself in a command and in a rule; all else may mean more.
const PLAIN: &str = " -_./:,+@%";

/// Advice after a denial, of several lines. `prompt` is the agent's, for one
/// that has no file yet.
pub(super) fn advice(ask: &AskUserEvent, file: &Path, prompt: &str) -> String {
    let Some(rule) = rule(ask) else {
        return "crabtalk: no rule says exactly this; ask again with --wait, and `crabtalk approve \
                --always` in another terminal allows exactly it from now on"
            .to_owned();
    };
    let shown = file.display();
    let whole = match ask.tool.as_str() {
        "edit" | "write" => " (that allows every change of this file)",
        _ => "",
    };
    let then = "and run `crabtalk daemon reload`";
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let front = format!("permissions: {{ {rule}: allow }}");
            return format!(
                "crabtalk: to allow it{whole}, write this into {shown}, {then}:\n---\n{front}\n---\n{}",
                prompt.trim()
            );
        }
        Err(e) => {
            return format!(
                "crabtalk: to allow it, write a rule into {shown}, which cannot be read: {e}"
            );
        }
    };
    match with_rule(&text, &rule, file) {
        Some((front, true)) => format!(
            "crabtalk: to allow it{whole}, put this in place of what stands before the text in {shown}, \
             {then}:\n---\n{front}\n---"
        ),
        Some((front, false)) => format!(
            "crabtalk: to allow it{whole}, put this before the text in {shown}, {then}:\n---\n{front}\n---"
        ),
        None => format!(
            "crabtalk: to allow it{whole}, say so under `permissions` in {shown}, {then}:\n  {rule}: allow"
        ),
    }
}

/// The key of the rule that allows exactly this, where one line says it: the
/// gate judges a command part by part, so that a rule names one simple command.
fn rule(ask: &AskUserEvent) -> Option<String> {
    let detail = ask.detail.as_str();
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c);
    let is_one = !detail.trim().is_empty() && detail.trim() == detail;
    let judged = matches!(ask.tool.as_str(), "bash" | "read" | "edit" | "write");
    let says_it = judged && is_one && detail.chars().all(is_plain) && visible(detail) == detail;
    says_it.then(|| serde_json::Value::from(format!("{}({detail})", ask.tool)).to_string())
}

/// The frontmatter of an agent's file with one more rule, and whether it had
/// any. `None` where that needs a person.
fn with_rule(text: &str, rule: &str, file: &Path) -> Option<(String, bool)> {
    let (before, _) = AgentFile::parse(text, file).ok()?;
    let front = before.frontmatter.trim_end();
    let had = text.trim_start_matches('\u{feff}').starts_with("---");
    let mut lines: Vec<String> = front.lines().map(str::to_owned).collect();
    match lines
        .iter()
        .position(|line| line.starts_with("permissions:"))
    {
        None => lines.push(format!("permissions: {{ {rule}: allow }}")),
        Some(at) => {
            let value = lines[at]["permissions:".len()..].trim();
            if value.is_empty() {
                let next = lines.get(at + 1).map_or("", String::as_str);
                let indent = &next[..next.len() - next.trim_start().len()];
                let indent = if indent.is_empty() { "  " } else { indent };
                lines.insert(at + 1, format!("{indent}{rule}: allow"));
            } else {
                let rest = value.strip_prefix('{')?;
                let comma = if rest.trim_start().starts_with('}') {
                    " "
                } else {
                    ","
                };
                lines[at] = format!("permissions: {{ {rule}: allow{comma}{rest}");
            }
        }
    }
    let front = lines.join("\n");
    let (after, _) = AgentFile::parse(&format!("---\n{front}\n---\n"), file).ok()?;
    let (old, new) = (&before.settings.permissions, &after.settings.permissions);
    let added: Vec<_> = new.iter().filter(|rule| !old.contains(rule)).collect();
    let is_it = matches!(added[..], [one] if one.permission == Permission::Allow);
    (is_it && new.len() == old.len() + 1).then_some((front, had))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(tool: &str, detail: &str) -> AskUserEvent {
        AskUserEvent {
            tool: tool.into(),
            detail: detail.into(),
            ..AskUserEvent::default()
        }
    }

    #[test]
    fn a_rule_is_offered_where_one_line_says_exactly_it() {
        assert_eq!(
            rule(&ask("bash", "git push")).unwrap(),
            "\"bash(git push)\""
        );
        assert_eq!(
            rule(&ask("edit", "/w/f.txt")).unwrap(),
            "\"edit(/w/f.txt)\""
        );
        for detail in [
            "a; b", "a\nb", "a*", "a 'b'", "$x", "a > b", "~/x", "A=1 b", " a", "", "a\u{a0}b",
        ] {
            assert_eq!(rule(&ask("bash", detail)), None, "{detail:?}");
        }
        assert_eq!(rule(&ask("server__tool", "x")), None);
    }

    #[test]
    fn a_file_keeps_what_it_says() {
        let file = Path::new("crab.md");
        let with = |text: &str| with_rule(text, "\"bash(ls)\"", file);
        for (text, want) in [
            ("---\n---\nHi.", "permissions: { \"bash(ls)\": allow }"),
            (
                "---\nmodel: m # why\n---\nHi.",
                "model: m # why\npermissions: { \"bash(ls)\": allow }",
            ),
            (
                "---\npermissions:\n    bash: ask\nmodel: m\n---\n",
                "permissions:\n    \"bash(ls)\": allow\n    bash: ask\nmodel: m",
            ),
            (
                "---\npermissions: { bash: ask }\n---\n",
                "permissions: { \"bash(ls)\": allow, bash: ask }",
            ),
            (
                "---\npermissions: {}\n---\n",
                "permissions: { \"bash(ls)\": allow }",
            ),
        ] {
            assert_eq!(with(text), Some((want.to_owned(), true)), "{text}");
        }
        assert!(with("Hi.").is_some_and(|(_, had)| !had));
        for text in [
            "---\npermissions: { \"bash(ls)\": ask }\n---\n",
            "---\npermissions: [\n---\n",
        ] {
            assert_eq!(with(text), None, "{text}");
        }
    }
}
