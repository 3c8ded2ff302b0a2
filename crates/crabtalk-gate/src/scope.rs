//! The scope of an agent (GATE-1, RFC 0082).
//!
//! Invariant: tools out of scope are neither offered nor executed; both decisions use
//! these functions.

use crabtalk_domain::{AgentName, Scope, Sender, glob_matches, tags};
use std::fmt;

/// Tools that remain in scope unless the scope lists tools.
const BASE_TOOLS: [&str; 9] = [
    "bash",
    "ask_user",
    "read",
    "grep",
    "glob",
    "edit",
    "write",
    "set_title",
    "todo",
];

/// The memory tools, in scope while memory is enabled.
const MEMORY_TOOLS: [&str; 4] = ["recall", "remember", "memory", "forget"];

/// The tool that a list of skills adds.
const SKILL_TOOL: &str = "skill";

/// The tool that a list of members adds.
const DELEGATE_TOOL: &str = "delegate";

/// Separates the name of a server from that of its tool.
const MCP_SEPARATOR: &str = "__";

/// The server of an MCP tool, `server__tool`; `None` for other tools.
pub fn mcp_server(tool: &str) -> Option<&str> {
    tool.split_once(MCP_SEPARATOR)
        .filter(|(server, rest)| !server.is_empty() && !rest.is_empty())
        .map(|(server, _)| server)
}

/// Tools that the scope must name exactly, since their effect outlasts the conversation.
const ON_REQUEST: &[&str] = &["schedule"];

/// Whether the agent may use this tool. A tool of an MCP server requires the tool and the
/// server in scope; `delegate` requires members.
pub fn allows_tool(scope: &Scope, tool: &str, memory_enabled: bool) -> bool {
    if MEMORY_TOOLS.contains(&tool) && !memory_enabled {
        return false;
    }
    if tool == DELEGATE_TOOL && scope.members.is_empty() {
        return false;
    }
    let server = mcp_server(tool);
    if server.is_some_and(|server| !allows_mcp(scope, server)) {
        return false;
    }
    if ON_REQUEST.contains(&tool) {
        return scope.tools.iter().any(|named| named == tool);
    }
    if !scope.tools.is_empty() {
        return listed(&scope.tools, tool);
    }
    let scoped = !scope.skills.is_empty() || !scope.mcps.is_empty() || !scope.members.is_empty();
    !scoped
        || BASE_TOOLS.contains(&tool)
        || MEMORY_TOOLS.contains(&tool)
        || (tool == SKILL_TOOL && !scope.skills.is_empty())
        || (server.is_some() && !scope.mcps.is_empty())
        || tool == DELEGATE_TOOL
}

/// Whether the agent may use this skill, by a tool call or a slash command.
pub fn allows_skill(scope: &Scope, skill: &str) -> bool {
    scope.skills.is_empty() || listed(&scope.skills, skill)
}

/// Whether the agent may use this MCP server.
pub fn allows_mcp(scope: &Scope, server: &str) -> bool {
    scope.mcps.is_empty() || listed(&scope.mcps, server)
}

/// Whether the agent may delegate to this agent.
pub fn allows_member(scope: &Scope, member: &str) -> bool {
    listed(&scope.members, member)
}

fn listed(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| glob_matches(pattern, name))
}

/// The `<scope>` block for the system prompt; empty if the scope is unrestricted.
pub fn prompt_block(scope: &Scope) -> String {
    let lines: Vec<String> = [
        ("tools", &scope.tools),
        ("skills", &scope.skills),
        ("mcp servers", &scope.mcps),
        ("members", &scope.members),
    ]
    .iter()
    .filter(|(_, list)| !list.is_empty())
    .map(|(name, list)| format!("{name}: {}\n", tags::line(&list.join(", "))))
    .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("<scope>\n{}</scope>", lines.concat())
}

/// The kind of an object out of scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A tool.
    Tool,
    /// A skill.
    Skill,
    /// An agent to delegate to.
    Member,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Skill => "skill",
            Self::Member => "member",
        })
    }
}

/// An attempt to use an object out of scope, logged as a security event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {kind} {name:?} is not in the scope of agent {agent}: add it to the agent's file to allow it"
)]
pub struct Violation {
    /// The agent that made the attempt.
    pub agent: AgentName,
    /// The sender for whom it acted.
    pub sender: Sender,
    /// The kind of the object.
    pub kind: Kind,
    /// The name of the object.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(tools: &[&str], skills: &[&str], mcps: &[&str], members: &[&str]) -> Scope {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Scope {
            tools: own(tools),
            skills: own(skills),
            mcps: own(mcps),
            members: own(members),
        }
    }

    #[test]
    fn tools_in_reach() {
        let open = scope(&[], &[], &[], &[]);
        let tools = scope(&["read", "search__*"], &["a"], &[], &["m"]);
        let skills = scope(&[], &["check-*"], &[], &[]);
        let mcps = scope(&[], &[], &["search*"], &[]);
        let members = scope(&[], &[], &[], &["writer"]);
        for (name, scope, tool, memory, want) in [
            ("open", &open, "anything", true, true),
            ("open", &open, "x__y", true, true),
            ("open", &open, "delegate", true, false),
            ("open", &open, "recall", false, false),
            ("tools", &tools, "read", true, true),
            ("tools", &tools, "bash", true, false),
            ("tools", &tools, "skill", true, false),
            ("tools", &tools, "delegate", true, false),
            ("tools", &tools, "recall", true, false),
            ("tools", &tools, "search__web", true, true),
            ("skills", &skills, "skill", true, true),
            ("skills", &skills, "bash", true, true),
            ("skills", &skills, "set_title", true, true),
            ("skills", &skills, "recall", true, true),
            ("skills", &skills, "recall", false, false),
            ("skills", &skills, "x__y", true, false),
            ("skills", &skills, "mcp", true, false),
            ("skills", &skills, "delegate", true, false),
            ("skills", &skills, "other", true, false),
            ("mcps", &mcps, "search-web__find", true, true),
            ("mcps", &mcps, "files__read", true, false),
            ("mcps", &mcps, "mcp", true, false),
            ("mcps", &mcps, "skill", true, false),
            ("members", &members, "delegate", true, true),
            ("members", &members, "skill", true, false),
        ] {
            assert_eq!(
                allows_tool(scope, tool, memory),
                want,
                "{name} {tool} {memory}"
            );
        }
        // A list of tools never extends the list of servers.
        let both = scope(&["*"], &[], &["search"], &[]);
        assert!(!allows_tool(&both, "files__read", true));
    }

    #[test]
    fn lists_hold_patterns_and_only_members_close_when_empty() {
        let some = scope(&[], &["check-*"], &["search"], &["writer", "res*"]);
        assert!(allows_skill(&some, "check-feeds") && !allows_skill(&some, "recheck"));
        assert!(allows_mcp(&some, "search") && !allows_mcp(&some, "search2"));
        assert!(allows_member(&some, "researcher") && !allows_member(&some, "crab"));
        let none = Scope::default();
        assert!(allows_skill(&none, "x") && allows_mcp(&none, "x") && !allows_member(&none, "x"));
    }

    #[test]
    fn the_block_names_what_is_restricted() {
        let some = scope(
            &[],
            &["check-feeds", "summarize"],
            &["search"],
            &["researcher", "writer"],
        );
        assert_eq!(
            prompt_block(&some),
            "<scope>\nskills: check-feeds, summarize\nmcp servers: search\nmembers: researcher, writer\n</scope>"
        );
        assert_eq!(prompt_block(&Scope::default()), "");
    }

    #[test]
    fn mcp_tools_name_their_server() {
        for (tool, server) in [
            ("a__b", Some("a")),
            ("a__b__c", Some("a")),
            ("bash", None),
            ("__b", None),
            ("a__", None),
        ] {
            assert_eq!(mcp_server(tool), server, "{tool}");
        }
    }
}
