//! Describes the gate's verdicts on an agent's tools, for people (GATE-2).
//!
//! Invariant: every verdict comes from [`judge`].

use super::rules::{Question, Standing, judge, mode_of, name_of, verb_of};
use crabtalk_domain::tool::{CommandAccess, ShellCommand, Subject, ToolSpec};
use crabtalk_domain::{AgentConfig, Mode, PermissionRule, glob_matches};
use std::path::Path;

/// A working folder, and a folder outside it.
const WORK: &str = "/work";
const ELSEWHERE: &str = "/elsewhere";

/// The verdicts on calls to one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRights {
    /// The tool's name.
    pub tool: String,
    /// The verdict in a run for an owner.
    pub owner: String,
    /// The verdict in a run for other senders.
    pub other: String,
    /// The verdict in an unattended run.
    pub unattended: String,
    /// The agent's rules for the tool, in the file's order.
    pub rules: Vec<String>,
}

/// Describes the verdicts on a tool if no rule with a pattern applies.
pub fn rights(agent: &AgentConfig, spec: &ToolSpec) -> ToolRights {
    let of_tool = |rule: &&PermissionRule| glob_matches(&rule.tool, &spec.name);
    let rules: Vec<&PermissionRule> = agent.permissions.iter().filter(of_tool).collect();
    let bare: Vec<PermissionRule> = rules
        .iter()
        .filter(|rule| rule.pattern.is_none())
        .map(|rule| (*rule).clone())
        .collect();
    let said = |is_owner, unattended| {
        let standing = Standing {
            is_owner,
            unattended,
        };
        in_words(agent, spec, &bare, standing)
    };
    let line = |rule: &PermissionRule| format!("{}: {}", name_of(rule), verb_of(rule.permission));
    ToolRights {
        tool: spec.name.clone(),
        owner: said(true, false),
        other: said(false, false),
        unattended: said(false, true),
        rules: rules.into_iter().map(line).collect(),
    }
}

fn in_words(
    agent: &AgentConfig,
    spec: &ToolSpec,
    rules: &[PermissionRule],
    standing: Standing,
) -> String {
    let says = |subject: &Subject| {
        let verdict = judge(&Question {
            agent: agent.name.as_str(),
            sender: "",
            tool: &spec.name,
            arguments: "{}",
            subject,
            default_permission: spec.default_permission,
            rules,
            approvals: &[],
            hosts: &[],
            cwd: Path::new(WORK),
            agent_cwd: agent.cwd.as_ref().map(|_| Path::new(WORK)),
            user_home: None,
            standing,
            mode: usual_mode(agent.mode, standing),
            is_own: false,
            disk: &|path: &Path| Some(path.to_owned()),
        });
        verb_of(verdict.permission)
    };
    let file = |folder: &str, write| Subject::Path {
        path: Path::new(folder).join("file"),
        write,
    };
    let command = |outside| {
        Subject::Command(ShellCommand {
            text: "command".into(),
            access: CommandAccess {
                outside,
                ..CommandAccess::default()
            },
        })
    };
    let whose = match standing.is_owner {
        true => "below the working folder",
        false => "below the agent's folder",
    };
    let (near, far, place) = match spec.name.as_str() {
        "bash" => (
            says(&command(false)),
            says(&command(true)),
            "in the sandbox",
        ),
        "read" | "grep" | "glob" => (
            says(&file(WORK, false)),
            says(&file(ELSEWHERE, false)),
            whose,
        ),
        "edit" | "write" => (says(&file(WORK, true)), says(&file(ELSEWHERE, true)), whose),
        _ => return says(&Subject::Other).into(),
    };
    match near == far {
        true => near.into(),
        false => format!("{near} {place}, else {far}"),
    }
}

/// The mode of a run in a work tree on a machine with a complete sandbox.
fn usual_mode(mode: Option<Mode>, standing: Standing) -> Mode {
    let is_owner = standing.is_owner && !standing.unattended;
    mode_of(mode, is_owner, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::{AgentName, Permission};

    fn shown(agent: &AgentConfig, tool: &str, default_permission: Permission) -> String {
        let spec = ToolSpec {
            name: tool.into(),
            description: String::new(),
            parameters: serde_json::Value::Null.into(),
            default_permission,
        };
        let rights = rights(agent, &spec);
        format!(
            "{} | {} | {} | {}",
            rights.owner,
            rights.other,
            rights.unattended,
            rights.rules.join(", ")
        )
    }

    #[test]
    fn rights_are_what_the_gate_says() {
        let mut agent = AgentConfig::new(AgentName::new("crab").expect("valid"), "");
        let rule = |tool: &str, pattern: Option<&str>, permission| PermissionRule {
            tool: tool.into(),
            pattern: pattern.map(Into::into),
            permission,
        };
        let (allow, ask) = (Permission::Allow, Permission::Ask);
        assert_eq!(
            shown(&agent, "bash", ask),
            "allow in the sandbox, else ask | ask in the sandbox, else deny | deny | "
        );
        assert_eq!(
            shown(&agent, "read", ask),
            "allow below the working folder, else ask | ask | deny | "
        );
        agent.cwd = Some("/srv".into());
        agent.mode = Some(Mode::Auto);
        assert_eq!(
            shown(&agent, "edit", ask),
            "allow below the working folder, else ask | \
             allow below the agent's folder, else ask | \
             allow below the agent's folder, else deny | "
        );
        assert_eq!(shown(&agent, "recall", allow), "allow | allow | allow | ");
        agent.permissions = vec![
            rule("bash", None, Permission::Deny),
            rule("bash", Some("git *"), allow),
            rule("rec*", None, ask),
        ];
        assert_eq!(
            shown(&agent, "bash", ask),
            "deny | deny | deny | bash: deny, bash(git *): allow"
        );
        assert_eq!(
            shown(&agent, "recall", allow),
            "ask | ask | deny | rec*: ask"
        );
    }
}
