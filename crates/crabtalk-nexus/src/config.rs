//! The team's configuration, `config/nexus.toml`.

use crate::machine::Times;
use crate::name::Name;
use crate::rules::{Rule, Rules};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest configuration file: thousands of agents.
const MAX_FILE: u64 = 1024 * 1024;

/// Maximum number of agents; each has a process or conversation.
pub const MAX_AGENTS: usize = 256;

/// The reason why the configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Read {
        path: PathBuf,
        source: crabtalk_files::Error,
    },
    #[error("there is no {}; `crabtalk nexus init` writes one", .0.display())]
    Absent(PathBuf),
    #[error("{path}: {message}")]
    Invalid { path: PathBuf, message: String },
}

/// Whether a compression needs an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// ADMIN has to approve.
    #[default]
    Ask,
    /// No approval is needed.
    Auto,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Team {
    /// The git repository in which the team works.
    pub root: PathBuf,
    /// Whether a message without a topic is accepted as `[GENERAL]`.
    pub lenient: bool,
    /// Whether compressions need an approval.
    pub compress: Compress,
    /// Whether NEXUS starts the daemon when it does not run; default yes.
    pub start_daemon: Option<bool>,
    pub notify: Notify,
    /// Timeouts and intervals.
    pub times: Times,
    /// Rules for the prompts of all terminal agents.
    pub rules: Rules,
    #[serde(rename = "agent")]
    pub agents: BTreeMap<Name, Member>,
    pub tmux: Tmux,
    /// Tables of kinds of terminal agents, which `terminal` parses.
    #[serde(rename = "kind")]
    pub kinds: BTreeMap<String, toml::Table>,
}

/// How ADMIN is notified of waiting agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notify {
    /// A command for `sh`, with `NEXUS_AGENT` and `NEXUS_TEXT` in its environment.
    pub command: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tmux {
    /// The socket of a separate tmux server; by default the user's server.
    pub socket: Option<PathBuf>,
    /// The tmux session; `nexus` by default.
    pub session: Option<String>,
}

/// An agent of the team.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Member {
    /// The daemon's agent; the member's name in lower case if neither `agent` nor `kind` is given.
    pub agent: Option<String>,
    /// The kind of terminal agent.
    pub kind: Option<String>,
    /// Environment variables of its program in a terminal.
    pub env: BTreeMap<String, String>,
    /// Whether its program in a terminal runs in the sandbox.
    pub sandbox: bool,
    /// Hosts that a sandboxed program can reach.
    pub hosts: Vec<String>,
    /// Files and folders that a sandboxed program may change, in addition to the team's root and the
    /// configuration of its kind.
    pub writable: Vec<PathBuf>,
    /// Files and folders that a sandboxed program may read, in addition to the system and toolchains.
    pub readable: Vec<PathBuf>,
    /// Commands of a terminal agent that are allowed without asking.
    pub allow: Vec<Rule>,
    /// Commands and tools of a terminal agent that are refused.
    pub deny: Vec<Rule>,
}

impl Team {
    /// Reads a configuration file. `user_home` replaces `~`.
    pub fn read(path: &Path, user_home: &Path) -> Result<Self, Error> {
        let text = crabtalk_files::read_text(path, MAX_FILE).map_err(|source| {
            if source.is_absent() {
                return Error::Absent(path.to_owned());
            }
            let path = path.to_owned();
            Error::Read { path, source }
        })?;
        Self::parse(&text, user_home).map_err(|message| Error::Invalid {
            path: path.to_owned(),
            message,
        })
    }

    fn parse(text: &str, user_home: &Path) -> Result<Self, String> {
        let mut team: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if let Ok(below) = team.root.strip_prefix("~") {
            team.root = user_home.join(below);
        }
        if !team.root.is_absolute() {
            return Err("`root` has to be an absolute path, or begin with `~`".into());
        }
        if team.agents.len() > MAX_AGENTS {
            return Err(format!("more than {MAX_AGENTS} agents"));
        }
        check_rules("[rules]", &team.rules.allow, &team.rules.deny, false)?;
        for (name, member) in &mut team.agents {
            let section = format!("[agent.{name}]");
            check_rules(&section, &member.allow, &member.deny, member.sandbox)?;
            member.check_sandbox(&section, user_home)?;
            if member.is_of_daemon() && !(member.allow.is_empty() && member.deny.is_empty()) {
                return Err(format!(
                    "{section}: rules of an agent of the daemon belong under `permissions` in \
                     agents/{}.md",
                    member.agent.clone().unwrap_or_else(|| name.folder())
                ));
            }
            if name.is_reserved() {
                return Err(format!("[agent.{name}]: the name is reserved"));
            }
            if member.agent.is_some() && member.kind.is_some() {
                return Err(format!(
                    "[agent.{name}] has both `agent` (of the daemon) and `kind` (in a terminal)"
                ));
            }
        }
        team.check_conversations()?;
        Ok(team)
    }

    /// Refuses two agents on one conversation, which could not be distinguished.
    fn check_conversations(&self) -> Result<(), String> {
        let mut known: BTreeMap<String, &Name> = BTreeMap::new();
        for (name, member) in &self.agents {
            let agent = member.agent.clone().unwrap_or_else(|| name.folder());
            if !member.is_of_daemon() {
                continue;
            }
            let conversation = format!("the conversation of the agent {:?}", agent.to_lowercase());
            if let Some(other) = known.insert(conversation.clone(), name) {
                return Err(format!(
                    "[agent.{name}] and [agent.{other}] share {conversation}; give one of them \
                     another `agent`"
                ));
            }
        }
        Ok(())
    }

    /// The rules of an agent, its own first; empty for an agent of the daemon.
    pub fn rules_of(&self, name: &Name) -> Rules {
        let terminal = |member: &&Member| !member.is_of_daemon();
        let Some(member) = self.agents.get(name).filter(terminal) else {
            return Rules::default();
        };
        let own = Rules {
            allow: member.allow.clone(),
            deny: member.deny.clone(),
        };
        own.and(&self.rules)
    }

    /// Adopts another configuration, except settings that need a restart of NEXUS; returns
    /// their names.
    pub fn reload(&mut self, new: Self) -> Vec<String> {
        let mut kept = Vec::new();
        let mut keep = |name: &str, is_same: bool| {
            if !is_same {
                kept.push(name.to_owned());
            }
        };
        keep("root", self.root == new.root);
        keep("[tmux]", self.tmux == new.tmux);
        keep("[kind]", self.kinds == new.kinds);
        keep("start_daemon", self.start_daemon == new.start_daemon);
        for name in self.agents.keys().chain(new.agents.keys()) {
            let same = match (self.agents.get(name), new.agents.get(name)) {
                (Some(old), Some(new)) => old.runs_as(new),
                (None, _) | (_, None) => false,
            };
            keep(&format!("[agent.{name}]"), same);
        }
        for (name, new) in &new.agents {
            if let Some(old) = self.agents.get_mut(name) {
                (old.allow, old.deny) = (new.allow.clone(), new.deny.clone());
            }
        }
        (self.lenient, self.compress, self.notify) = (new.lenient, new.compress, new.notify);
        (self.times, self.rules) = (new.times, new.rules);
        kept.dedup();
        kept
    }
}

/// Refuses allow rules without a command, and prefixes outside the sandbox.
fn check_rules(section: &str, allow: &[Rule], deny: &[Rule], sandbox: bool) -> Result<(), String> {
    if let Some(rule) = allow.iter().find(|rule| !rule.has_command()) {
        return Err(format!(
            "{section}: `allow` names commands; write `{rule}(command)`"
        ));
    }
    let mut all = allow.iter().chain(deny);
    match all.find(|rule| rule.is_prefix() && !sandbox) {
        None => Ok(()),
        Some(rule) => Err(format!(
            "{section}: `{rule}` is a prefix, which only an agent with `sandbox = true` may \
             have; write the whole command"
        )),
    }
}

impl Member {
    /// Whether the agent's program or conversation is the same.
    fn runs_as(&self, other: &Self) -> bool {
        let of = |member: &Self| Self {
            allow: Vec::new(),
            deny: Vec::new(),
            ..member.clone()
        };
        of(self) == of(other)
    }

    /// Checks the sandbox settings and resolves `~`.
    fn check_sandbox(&mut self, section: &str, user_home: &Path) -> Result<(), String> {
        match self.kind.as_deref() {
            None if self.sandbox => {
                return Err(format!(
                    "{section}: `sandbox` is for programs in terminals; commands of an agent of \
                     the daemon run in the sandbox by its mode"
                ));
            }
            Some("crabtalk") if self.sandbox => {
                return Err(format!(
                    "{section}: kind \"crabtalk\" needs the daemon, which the sandbox blocks; \
                     remove `sandbox`: the daemon runs its commands in a sandbox of its own"
                ));
            }
            _ => {}
        }
        let paths = || self.writable.iter().chain(&self.readable);
        if !self.sandbox && (paths().next().is_some() || !self.hosts.is_empty()) {
            return Err(format!(
                "{section}: `hosts`, `writable` and `readable` need `sandbox = true`"
            ));
        }
        for path in self.writable.iter_mut().chain(&mut self.readable) {
            if let Ok(below) = path.strip_prefix("~") {
                *path = user_home.join(below);
            }
            if !path.is_absolute() {
                return Err(format!(
                    "{section}: {} has to be an absolute path, or begin with `~`",
                    path.display()
                ));
            }
        }
        Ok(())
    }

    /// Whether the agent is one of the daemon.
    pub fn is_of_daemon(&self) -> bool {
        self.kind.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Team, String> {
        Team::parse(text, Path::new("/home/me"))
    }

    #[test]
    fn team_is_parsed_with_defaults() {
        let team = parse(
            "root = \"~/team\"\n[rules]\nallow = [\"bash(ls)\"]\n[agent.builder]\n\
             [agent.REVIEW]\nkind = \"codex\"\nallow = [\"bash(cargo test)\"]\n\
             [kind.codex]\nlaunch = [\"codex\"]\n",
        )
        .unwrap();
        assert_eq!(team.root, Path::new("/home/me/team"));
        let builder = Name::new("builder").unwrap();
        assert_eq!(team.rules_of(&builder), Rules::default());
        assert_eq!(team.times.silent_secs, 120);
        let review = Name::new("review").unwrap();
        assert_eq!(team.rules_of(&review).allow.len(), 2);
    }

    #[test]
    fn reload_takes_rules_and_names_what_needs_a_restart() {
        let mut team =
            parse("root = \"/a\"\n[agent.B]\nkind = \"codex\"\n[agent.C]\nkind = \"pi\"\n")
                .unwrap();
        let new = parse(
            "root = \"/a\"\nlenient = true\n[agent.B]\nkind = \"codex\"\n\
             allow = [\"bash(ls)\"]\n[agent.C]\nkind = \"codex\"\n[agent.D]\n",
        )
        .unwrap();
        assert_eq!(team.reload(new), ["[agent.C]", "[agent.D]"]);
        assert!(team.lenient);
        assert_eq!(team.rules_of(&Name::new("B").unwrap()).allow.len(), 1);
        let c = &team.agents[&Name::new("C").unwrap()];
        assert_eq!(c.kind.as_deref(), Some("pi"));
        assert_eq!(team.agents.len(), 2);
    }

    #[test]
    fn errors_name_their_place() {
        for (text, says) in [
            ("root = 7\n", "line 1, column 8"),
            ("root = \"/a\"\n[agent.B]\nalow = []\n", "allow"),
            ("root = \"a\"\n", "absolute"),
            (
                "root = \"/a\"\n[rules]\nallow = [\"read\"]\n",
                "read(command)",
            ),
            ("root = \"/a\"\n[agent.B]\ndeny = [\"x\"]\n", "agents/b.md"),
            (
                "root = \"/a\"\n[agent.B]\nsandbox = true\n",
                "programs in terminals",
            ),
            (
                "root = \"/a\"\n[agent.B]\nkind = \"crabtalk\"\nsandbox = true\n",
                "needs the daemon",
            ),
            (
                "root = \"/a\"\n[agent.B]\nkind = \"codex\"\nhosts = [\"a.b\"]\n",
                "need `sandbox = true`",
            ),
            (
                "root = \"/a\"\n[agent.B]\nkind = \"codex\"\nallow = [\"bash(ls *)\"]\n",
                "is a prefix",
            ),
            (
                "root = \"/a\"\n[rules]\nallow = [\"bash(ls *)\"]\n",
                "is a prefix",
            ),
            (
                "root = \"/a\"\n[agent.B]\n[agent.C]\nagent = \"B\"\n",
                "share the conversation",
            ),
            ("root = \"/a\"\n[agent.NEXUS]\n", "is reserved"),
            ("root = \"/a\"\n[agent.\"a b\"]\n", "not a valid name"),
            (
                "root = \"/a\"\n[rules]\nallow = [\"bash(x\"]\n",
                "parenthesis",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
