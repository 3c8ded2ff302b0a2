//! The gate's verdicts.

mod page;

use super::rules::Question;
use super::{Approval, Disk, Standing, Verdict, judge, mode_of, standing};
use crabtalk_domain::tool::{CommandAccess, ShellCommand, Subject};
use crabtalk_domain::{
    ConversationKey, Mode, Origin, Permission, PermissionRule, Principal, Sender, TokenName,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const OWNER: Standing = Standing {
    is_owner: true,
    unattended: false,
};
const OTHER: Standing = Standing {
    is_owner: false,
    unattended: false,
};
const UNATTENDED: Standing = Standing {
    is_owner: false,
    unattended: true,
};

/// A disk without links, on whose `PATH` the folder's own `local` comes first.
struct Links;

impl Disk for Links {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn is_replaceable(&self, program: &str, _: &Path) -> bool {
        program == "local"
    }
}

/// A call with its circumstances.
#[derive(Clone)]
struct Call {
    tool: &'static str,
    subject: Subject,
    rules: Vec<PermissionRule>,
    approvals: Vec<Approval>,
    hosts: Vec<String>,
    cwd: &'static str,
    agent_cwd: Option<&'static str>,
    standing: Standing,
    mode: Mode,
    default_permission: Permission,
}

/// Rules as `tool(pattern): verb`, one a line.
fn rules(text: &str) -> Vec<PermissionRule> {
    let rule = |line: &str| {
        let (name, verb) = line.rsplit_once(": ").expect("a rule");
        let (tool, pattern) = match name.split_once('(') {
            Some((tool, rest)) => (tool, rest.strip_suffix(')')),
            None => (name, None),
        };
        PermissionRule {
            tool: tool.into(),
            pattern: pattern.map(Into::into),
            permission: match verb {
                "allow" => Permission::Allow,
                "ask" => Permission::Ask,
                _ => Permission::Deny,
            },
        }
    };
    text.lines().map(rule).collect()
}

impl Call {
    fn of(tool: &'static str, subject: Subject) -> Self {
        Self {
            tool,
            subject,
            rules: Vec::new(),
            approvals: Vec::new(),
            hosts: Vec::new(),
            cwd: "/w/p",
            agent_cwd: None,
            standing: OWNER,
            mode: Mode::Auto,
            default_permission: Permission::Ask,
        }
    }

    fn bash(text: &str) -> Self {
        Self::of("bash", Subject::Command(text.into()))
    }

    fn with_access(access: CommandAccess) -> Self {
        let command = ShellCommand {
            text: "make".into(),
            access,
        };
        Self::of("bash", Subject::Command(command))
    }

    fn outside(text: &str) -> Self {
        let command = ShellCommand {
            text: text.into(),
            access: CommandAccess {
                outside: true,
                ..CommandAccess::default()
            },
        };
        Self::of("bash", Subject::Command(command))
    }

    fn network(host: &str) -> Self {
        Self::with_access(CommandAccess {
            hosts: vec![host.into()],
            ..CommandAccess::default()
        })
    }

    fn file(tool: &'static str, path: &str) -> Self {
        let subject = Subject::Path {
            path: path.into(),
            write: matches!(tool, "edit" | "write"),
        };
        Self::of(tool, subject)
    }

    fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    fn rules(self, text: &str) -> Self {
        Self {
            rules: rules(text),
            ..self
        }
    }

    fn standing(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }

    fn verdict(&self) -> Verdict {
        judge(&Question {
            agent: "crab",
            sender: "user",
            tool: self.tool,
            arguments: "{}",
            subject: &self.subject,
            default_permission: self.default_permission,
            rules: &self.rules,
            approvals: &self.approvals,
            hosts: &self.hosts,
            cwd: Path::new(self.cwd),
            agent_cwd: self.agent_cwd.map(Path::new),
            user_home: Some(Path::new("/home/u")),
            standing: self.standing,
            mode: self.mode,
            is_own: false,
            disk: &Links,
        })
    }

    fn says(&self) -> &'static str {
        super::rules::verb_of(self.verdict().permission)
    }

    fn access(&self) -> CommandAccess {
        match self.verdict().subject {
            Subject::Command(command) => command.access,
            Subject::Path { .. } | Subject::Other => CommandAccess::default(),
        }
    }
}

fn approval(tool: &str, exact: &str) -> Approval {
    Approval {
        agent: "crab".into(),
        sender: "user".into(),
        tool: tool.into(),
        exact: exact.into(),
        cwd: "/w/p".into(),
        at: "2026-11-21T15:00:00Z".into(),
        by: "local".into(),
        prefix: false,
    }
}

#[test]
fn command_rules_hold_in_the_sandbox() {
    for (mode, rule, command, want) in [
        (
            Mode::Ask,
            "bash(cargo test *): allow",
            "cargo test -p x",
            "allow",
        ),
        (
            Mode::Ask,
            "bash(cargo test *): allow",
            "cargo test && cargo test",
            "allow",
        ),
        (
            Mode::Ask,
            "bash(cargo test *): allow",
            "cargo test; rm x",
            "ask",
        ),
        (
            Mode::Ask,
            "bash(cargo test *): allow",
            "cargo testify",
            "ask",
        ),
        (
            Mode::Ask,
            "bash(cargo test *): allow",
            "cargo test $(x)",
            "ask",
        ),
        (Mode::Ask, "bash(ls*): allow", "ls/x", "ask"),
        (Mode::Ask, "bash(local *): allow", "local x", "ask"),
        (Mode::Ask, "bash(*): allow", "local x", "allow"),
        (Mode::Ask, "bash(local *): deny", "local x", "deny"),
        (Mode::Ask, "bash(*): allow", "cargo $(x)", "allow"),
        (Mode::Ask, "bash: allow", "cargo $(x)", "allow"),
        (Mode::Ask, "bash: allow\nbash(rm *): deny", "rm x", "deny"),
        (
            Mode::Auto,
            "bash(git push *): deny",
            "a; git push origin",
            "deny",
        ),
        (
            Mode::Auto,
            "bash(git push *): deny",
            "/usr/bin/git push",
            "deny",
        ),
        (
            Mode::Auto,
            "bash(git push *): deny",
            "echo $(git push)",
            "deny",
        ),
        (Mode::Auto, "bash(git push *): ask", "git push", "ask"),
        (Mode::Auto, "bash: ask", "ls", "ask"),
        (Mode::Auto, "bash: deny", "ls", "deny"),
        (Mode::Auto, "", "ls > x; $(anything)", "allow"),
        (Mode::Full, "bash: deny", "ls", "deny"),
        (Mode::ReadOnly, "bash(ls *): deny", "ls", "deny"),
    ] {
        let call = Call::bash(command).mode(mode).rules(rule);
        assert_eq!(call.says(), want, "{mode}: {rule}: {command}");
        assert!(!call.access().outside || mode == Mode::Full, "{command}");
    }
}

#[test]
fn only_exact_rules_and_people_leave_the_sandbox() {
    let exact = "outside(git push origin main): allow";
    for (mode, rule, command, want) in [
        (Mode::Auto, "", "git push origin main", "ask"),
        (Mode::Auto, "bash: allow", "git push origin main", "ask"),
        (Mode::Auto, "*: allow", "git push origin main", "ask"),
        (Mode::Auto, exact, "git push origin main", "allow"),
        (Mode::Auto, exact, "git push origin main --force", "ask"),
        (
            Mode::Auto,
            "outside(git *): allow",
            "git push origin main",
            "ask",
        ),
        (Mode::Auto, "outside(rm x): deny", "rm x", "deny"),
        (Mode::ReadOnly, exact, "git push origin main", "deny"),
        (Mode::Full, "", "git push origin main", "allow"),
    ] {
        let call = Call::outside(command).mode(mode).rules(rule);
        assert_eq!(call.says(), want, "{mode}: {rule}: {command}");
    }
    let approved = Call {
        approvals: vec![approval("bash", "make")],
        ..Call::outside("make")
    };
    assert_eq!(approved.says(), "ask");
    for standing in [OTHER, UNATTENDED] {
        assert_eq!(Call::outside("make").standing(standing).says(), "deny");
        let named = Call::outside("make").standing(standing);
        assert_eq!(named.rules("outside(make): allow").says(), "allow");
    }
}

#[test]
fn hosts_and_folders_need_a_grant() {
    let granted = Call {
        hosts: vec!["crates.io".into()],
        ..Call::network("crates.io")
    };
    let write = Call::with_access(CommandAccess {
        write: vec![PathBuf::from("/w/q")],
        ..CommandAccess::default()
    });
    for (what, call, want) in [
        ("host", Call::network("crates.io"), "ask"),
        (
            "host by rule",
            Call::network("crates.io").rules("network(*.io): allow"),
            "allow",
        ),
        (
            "denied host",
            Call::network("crates.io").rules("network: deny"),
            "deny",
        ),
        ("granted host", granted.clone(), "allow"),
        ("folder", write.clone(), "ask"),
        (
            "folder by rule",
            write.clone().rules("write(/w/q): allow"),
            "allow",
        ),
        ("read-only", write.mode(Mode::ReadOnly), "deny"),
        (
            "unattended",
            Call::network("crates.io").standing(UNATTENDED),
            "deny",
        ),
    ] {
        assert_eq!(call.says(), want, "{what}");
    }
    let later = Call {
        hosts: granted.hosts,
        ..Call::bash("cargo fetch")
    };
    assert_eq!(later.access().hosts, ["crates.io"]);
    assert!(Call::bash("ls").mode(Mode::ReadOnly).access().read_only);
}

#[test]
fn files_that_run_later_ask_in_auto() {
    for (path, want) in [
        ("/w/p/src/a.rs", "allow"),
        ("/w/p/.github/workflows/ci.yml", "ask"),
        ("/w/p/.vscode/tasks.json", "ask"),
        ("/w/p/.envrc", "ask"),
        ("/w/p/.claude/settings.json", "ask"),
        ("/w/p/app.code-workspace", "ask"),
        ("/w/p/fish/config.fish", "ask"),
        ("/w/p/.git/hooks/pre-commit", "ask"),
        ("/w/p/sub/.Git/config", "ask"),
        ("/w/q/a.rs", "ask"),
    ] {
        assert_eq!(Call::file("edit", path).says(), want, "{path}");
    }
    let at_home = Call {
        cwd: "/home/u",
        ..Call::file("write", "/home/u/a")
    };
    assert_eq!(at_home.says(), "ask");
}

#[test]
fn approvals_lift_asks_of_the_same_call() {
    let ask = Call::bash("cargo test").mode(Mode::Ask);
    let with = |approval: Approval| Call {
        approvals: vec![approval],
        ..ask.clone()
    };
    let prefix = Approval {
        prefix: true,
        ..approval("bash", "cargo test")
    };
    assert_eq!(ask.says(), "ask");
    assert_eq!(with(approval("bash", "cargo test")).says(), "allow");
    assert_eq!(with(approval("bash", "cargo")).says(), "ask");
    assert_eq!(with(prefix).says(), "ask");
    let denied = with(approval("bash", "cargo test")).rules("bash: deny");
    assert_eq!(denied.says(), "deny");
}

#[test]
fn modes_default_by_owner_and_folder() {
    for (of_agent, owner, contained, want) in [
        (None, true, true, Mode::Auto),
        (None, true, false, Mode::Ask),
        (None, false, true, Mode::Ask),
        (Some(Mode::Full), true, false, Mode::Full),
        (Some(Mode::Full), false, true, Mode::Auto),
        (Some(Mode::ReadOnly), false, true, Mode::ReadOnly),
    ] {
        assert_eq!(mode_of(of_agent, owner, contained), want);
    }
}

#[test]
fn origins_decide_the_standing() {
    let owners = ["user".to_owned(), "cron".to_owned()];
    let key = ConversationKey::new("crab", "user").expect("valid");
    let cron = Origin::Cron {
        id: 1,
        by: String::new(),
    };
    let token = Origin::Client {
        principal: Principal::Token(TokenName::new("laptop").expect("a name")),
    };
    let delegate = Origin::Delegate {
        root: key.clone(),
        parent: key,
        run: 1,
        depth: 1,
        principal: Some(Principal::Owner),
    };
    for (origin, sender, root, want) in [
        (&Origin::local(), "user", None, OWNER),
        (&Origin::local(), "tg:1", None, OTHER),
        (&Origin::local(), "cron", None, OTHER),
        (&token, "user", None, OTHER),
        (&cron, "user", None, UNATTENDED),
        (&cron, "user", Some(OWNER), OTHER),
        (&delegate, "delegate:1", Some(OWNER), OWNER),
        (&delegate, "delegate:1", None, UNATTENDED),
    ] {
        let sender = Sender::new(sender).expect("valid");
        assert_eq!(standing(origin, &sender, &owners, root), want, "{origin}");
    }
}

proptest! {
    /// No text lets a rule for one command allow another one.
    #[test]
    fn rules_allow_plain_compositions_only(
        shape in prop::sample::select(vec![
            "A; F", "F && A", "A | F", "A & F", "A\nF", "A $(F)", "A `F`", "(A; F)", "A <(F)",
            "if A; then F; fi", "A > $(F)", "X=$(F) A", "env F", "eval F", "A \\\n; F", "! F",
        ]),
        allowed in prop::sample::select(vec!["git status", "git status -s", "git status $x"]),
        forbidden in prop::sample::select(vec!["rm -rf x", "\\rm x", "'rm' x", "/bin/rm x", "$z x"]),
    ) {
        let text = shape.replace('F', forbidden).replace('A', allowed);
        let call = Call::bash(&text).mode(Mode::Ask).rules("bash(git status *): allow");
        prop_assert_ne!(call.says(), "allow", "{}", text);
    }

    #[test]
    fn any_rule_and_call_has_a_verdict(pattern in "\\PC{0,30}", command in "\\PC{0,60}") {
        let rule = format!("bash({}): allow", pattern.replace('\n', " "));
        for mode in Mode::ALL {
            Call::bash(&command).mode(mode).rules(&rule).verdict();
            Call::file("read", &format!("/{command}")).mode(mode).rules(&rule).verdict();
        }
    }
}
