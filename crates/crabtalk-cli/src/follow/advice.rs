//! Advice after a denied call: the rule that would allow it.

use crabtalk_proto::{AskUserEvent, visible};

/// Characters without a special meaning in commands and rules.
const PLAIN: &str = " -_./:,+@%";

/// Explains how to allow a denied call of this agent.
pub(super) fn advice(ask: &AskUserEvent, agent: &str) -> String {
    match rule(ask) {
        Some(rule) => format!(
            "crabtalk: to allow it, add `{rule}: allow` to `permissions` with `crabtalk agents edit {agent}`"
        ),
        None => {
            "crabtalk: to allow it, ask again with --wait and run `crabtalk approve` in another \
                 terminal"
                .to_owned()
        }
    }
}

/// The key of a rule that allows exactly this call; `None` for commands with several parts, which
/// the gate judges separately.
fn rule(ask: &AskUserEvent) -> Option<String> {
    let detail = ask.detail.as_str();
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c);
    let is_one = !detail.trim().is_empty() && detail.trim() == detail;
    let name = match ask.tool.as_str() {
        "bash" if ask.outside => "outside",
        // No rule for commands allows hosts or folders.
        "bash" if ask.always.is_none() => return None,
        name @ ("bash" | "read" | "edit" | "write") => name,
        _ => return None,
    };
    let is_exact = is_one && detail.chars().all(is_plain) && visible(detail) == detail;
    is_exact.then(|| serde_json::Value::from(format!("{name}({detail})")).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::ApprovalInfo;

    fn ask(tool: &str, detail: &str) -> AskUserEvent {
        AskUserEvent {
            tool: tool.into(),
            detail: detail.into(),
            always: Some(ApprovalInfo::default()),
            ..AskUserEvent::default()
        }
    }

    #[test]
    fn simple_calls_have_a_rule() {
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
    fn commands_with_more_access_have_another_rule_or_none() {
        let mut call = ask("bash", "ls");
        call.always = None;
        assert_eq!(rule(&call), None);
        call.outside = true;
        assert_eq!(rule(&call).unwrap(), "\"outside(ls)\"");
    }
}
