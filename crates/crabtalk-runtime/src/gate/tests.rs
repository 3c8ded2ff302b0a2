//! The gate as tables: disguises, precedence, origins.

mod attack;
mod attacks;
mod languages;
mod origins;
mod places;
mod redirections;

use super::approvals::Approval;
use super::rules::{Question, Standing, Verdict, judge, standing};
use crabtalk_domain::tool::{Reach, Subject};
use crabtalk_domain::{Permission, PermissionRule};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

use Permission::{Allow, Ask, Deny};

const OWNER: Standing = Standing {
    is_owner: true,
    unattended: false,
};
const OTHER: Standing = Standing {
    is_owner: false,
    unattended: false,
};
const NOBODY: Standing = Standing {
    is_owner: false,
    unattended: true,
};

/// A call by agent `crab` for `user`, in `/w/p`, of a user at home in `/home/u`.
struct Call<'a> {
    rules: &'a str,
    tool: &'a str,
    subject: Subject,
    default_permission: Permission,
    approvals: &'a [Approval],
    cwd: &'a str,
    agent_cwd: Option<&'a str>,
    standing: Standing,
    is_own: bool,
    reach: &'a dyn Fn(&Path) -> Reach,
    resolve: &'a (dyn Fn(&Path) -> Option<PathBuf> + Send + Sync),
}

/// Rules as `tool(pattern): permission`, one per line.
fn rules(text: &str) -> Vec<PermissionRule> {
    text.lines()
        .map(|line| {
            let (name, permission) = line.rsplit_once(": ").expect("`rule: permission`");
            let (tool, pattern) = match name.split_once('(') {
                Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').expect("`)`").to_owned())),
                None => (name, None),
            };
            let permission = match permission {
                "allow" => Allow,
                "ask" => Ask,
                _ => Deny,
            };
            PermissionRule {
                tool: tool.to_owned(),
                pattern,
                permission,
            }
        })
        .collect()
}

fn lexical(path: &Path) -> Option<PathBuf> {
    super::path::absolute(path, Path::new("/"), None)
}

impl<'a> Call<'a> {
    fn of(rules: &'a str, tool: &'a str, subject: Subject) -> Self {
        Self {
            rules,
            tool,
            subject,
            default_permission: Ask,
            approvals: &[],
            cwd: "/w/p",
            agent_cwd: None,
            standing: OWNER,
            is_own: false,
            reach: &|_| Reach::Open,
            resolve: &lexical,
        }
    }

    fn bash(rules: &'a str, command: &str) -> Self {
        Self::of(rules, "bash", Subject::Command(command.into()))
    }

    fn file(rules: &'a str, tool: &'a str, path: &str) -> Self {
        Self::of(
            rules,
            tool,
            Subject::Path {
                path: path.into(),
                write: tool != "read",
            },
        )
    }

    fn verdict(&self) -> Verdict {
        judge(&Question {
            agent: "crab",
            sender: "user",
            tool: self.tool,
            arguments: "{\"a\":1}",
            subject: &self.subject,
            default_permission: self.default_permission,
            rules: &rules(self.rules),
            approvals: self.approvals,
            cwd: Path::new(self.cwd),
            agent_cwd: self.agent_cwd.map(Path::new),
            user_home: Some(Path::new("/home/u")),
            standing: self.standing,
            is_own: self.is_own,
            disk: &self.resolve,
            reach: self.reach,
        })
    }

    fn says(&self) -> Permission {
        self.verdict().permission
    }
}

/// Rules, a command, and what they say of it.
fn check(rows: &[(&str, &str, Permission)]) {
    for (rules, command, want) in rows {
        let verdict = Call::bash(rules, command).verdict();
        let why = &verdict.reason;
        assert_eq!(verdict.permission, *want, "{rules:?} {command}: {why}");
    }
}

/// Rules that allow a few commands.
const FEW: &str =
    "bash(git status*): allow\nbash(echo *): allow\nbash(cat*): allow\nbash(ls*): allow";

#[test]
fn a_command_of_allowed_parts_passes() {
    for honest in [
        "git status",
        "git status -s",
        "git  'status'",
        "git status | cat -",
        "git status && echo done",
        "git status 2>&1",
        "git status >/dev/null 2>&1",
        "git status\necho b",
        "ls *.rs",
        "echo 'a; rm -rf /'",
    ] {
        assert_eq!(Call::bash(FEW, honest).says(), Allow, "{honest}");
    }
}

/// A rule for the first word of these does not allow them, and they are shown whole.
fn check_disguises(disguises: &[&str]) {
    for disguise in disguises {
        let verdict = Call::bash(FEW, disguise).verdict();
        assert_eq!(verdict.permission, Ask, "{disguise}: {}", verdict.reason);
        assert_eq!(verdict.detail, *disguise);
        assert!(!verdict.reason.is_empty());
    }
}

#[test]
fn no_substitution_and_no_redirection_passes_an_allow_for_the_first_word() {
    check_disguises(&[
        "echo \"$(echo a)\"",
        "cat < src/a",
        "cat <<E\nhello $x\nE",
        "(git status; ls)",
        "! git status",
        "if git status; then echo a; fi",
        "echo $(git status)",
        "git status; rm -rf /",
        "git status && rm x",
        "git status || rm x",
        "git status & rm x",
        "git status &",
        "git status\nrm x",
        "git status | sh",
        "git status |& sh",
        "git status $(rm x)",
        "git status `rm x`",
        "git status \"$(rm x)\"",
        "git status ${a:-$(rm x)}",
        "git status ${a@P}",
        "git status $((b[$(rm x)]))",
        "git status <(rm x)",
        "git status > /etc/passwd",
        "git status >> f",
        "git status &> f",
        "git status >| f",
        "git status > $f",
        "git status > /dev/tcp/h/1",
        "git status < /etc/shadow",
        "git status <<< \"$(rm x)\"",
        "git status <<E\n$(rm x)\nE",
    ]);
}

#[test]
fn no_disguise_passes_an_allow_for_its_first_word() {
    check_disguises(&[
        "GIT_PAGER=x git status",
        "PATH=. git status",
        "PATH=.; git status",
        "export PATH=.; git status",
        "env X=1 git status",
        "/tmp/git status",
        "./git status",
        "g$x status",
        "$g status",
        "{git,status}",
        "'git status'",
        "git -c core.pager=x status",
        "git --exec-path=. status",
        "git $x status",
        "command git status",
        "eval git status",
        "eval 'git status'",
        "exec git status",
        "sh -c 'git status'",
        "bash -c \"git status\"",
        "echo x | xargs git status",
        "find . -exec git status ';'",
        "sudo git status",
        "nohup git status",
        "timeout 1 git status",
        "nice git status",
        "git() { rm x; }; git status",
        "alias git=rm; git status",
        "trap 'rm x' EXIT; git status",
        ". ./f; git status",
        "coproc git status",
        "for git in a; do git status; done",
        "while rm x; do git status; done",
        "case $(rm x) in *) git status;; esac",
        "[[ -v a[$(rm x)] ]] && git status",
        "(git status; rm x)",
        "{ git status; rm x; }",
        "if git status; then rm x; fi",
        "git status # \nrm x",
        "git status \\\n; rm x",
        "git status;rm${IFS}x",
        "time rm x",
        "! rm x",
        "git status $'\\n' ; rm x",
        "git status\u{a0}; rm x",
        "git status\r\nrm x",
        "git status 'unclosed",
        "git status ${ rm x; }",
        "echo a | tee f",
        "cat a > ../b",
        "echo a > ~/.bashrc",
        "ls && cd / && cat < etc/shadow",
    ]);
}

#[test]
fn a_denial_reaches_behind_wrappers() {
    for base in [
        "bash: allow\nbash(rm *): deny",
        "bash(*): allow\nbash(rm *): deny",
    ] {
        for denied in [
            "rm x",
            "r\"m\" x",
            "\\rm x",
            "/bin/rm x",
            "a; rm x",
            "a | rm x",
            "a $(rm x)",
            "a \"`rm x`\"",
            "env rm x",
            "X=1 rm x",
            "sudo -u root rm x",
            "xargs rm",
            "sh -c 'rm x'",
            "bash -c \"a; rm x\"",
            "nohup rm x",
            "timeout 5 rm x",
            "eval rm x",
            "find . -exec rm {} +",
            "env nice sh -c 'rm x'",
            "rm -rf *",
            "rm $x",
            "bash <<E\nrm x\nE",
            "a <(rm x)",
            "f() { rm x; }",
            "a & rm x",
            "X=$(rm x)",
            "rm x > f",
            "if rm x; then a; fi",
        ] {
            let verdict = Call::bash(base, denied).verdict();
            assert_eq!(verdict.permission, Deny, "{denied}: {}", verdict.reason);
        }
        // What might be a denied command is asked about.
        for unclear in [
            "$x y",
            "r$x y",
            "sh script",
            "eval $x",
            "echo rm x | sh",
            "python -c x",
            "{rm,x}",
            "a 'b",
            "[[ a ]]",
            "sudo -Z root rm x",
            "source f",
            "git -c a=b status",
        ] {
            let verdict = Call::bash(base, unclear).verdict();
            assert_eq!(verdict.permission, Ask, "{unclear}: {}", verdict.reason);
        }
        for free in ["git status", "a > f; b < g", "echo rm x", "grep -r rm src"] {
            assert_eq!(Call::bash(base, free).says(), Allow, "{free}");
        }
    }
}

#[test]
fn rules_take_precedence_as_written() {
    check(&[
        ("", "ls", Ask),
        ("bash: allow", "ls; 'unparsed", Allow),
        ("bash: allow", "X=1 sh -c $y > /etc/passwd &", Allow),
        ("bash(*): allow", "X=1 sh -c $y > /etc/passwd &", Allow),
        ("bash: deny", "ls", Deny),
        ("bash: ask\nbash(ls): allow", "ls", Allow),
        ("bash: deny\nbash(ls*): allow", "ls -l", Allow),
        ("bash: deny\nbash(ls*): allow", "ls; id", Deny),
        ("bash: deny\nbash(ls*): allow", "X=1 ls", Deny),
        ("bash: allow\nbash(ls*): ask", "ls", Ask),
        ("bash: allow\nbash(ls*): ask", "id; ls", Ask),
        ("bash: allow\nbash(ls*): deny", "id", Allow),
        ("bash(l*): allow\nbash(ls*): deny", "ls", Deny),
        ("bash(l*): allow\nbash(ls*): ask", "ls", Ask),
        ("bash(l*): ask\nbash(ls*): deny", "ls", Deny),
        ("bash(*): allow\nbash: deny", "anything $x", Allow),
        ("*: allow", "ls", Allow),
        ("*: deny\nbash: allow", "ls", Deny),
        ("ba*: deny", "ls", Deny),
        ("edit: allow", "ls", Ask),
        // What is not plain is allowed by no narrow rule, also if it is spelled
        // out.
        ("bash(X=1 id): allow", "X=1 id", Ask),
        // A wrapper is allowed by its exact words only.
        ("bash(sudo *): allow", "sudo id", Ask),
        ("bash(sudo id): allow", "sudo id", Allow),
        ("bash(sudo id): allow", "sudo id x", Ask),
        ("bash(sh -c 'a; b'): allow", "sh -c \"a; b\"", Allow),
        ("bash(sh -c a b): allow", "sh -c 'a b'", Ask),
        ("bash(sudo id): allow\nbash(id*): deny", "sudo id", Deny),
        (
            "bash(sh -c 'rm x'): deny\nbash: allow",
            "sh -c 'rm x'",
            Deny,
        ),
        ("bash(a*): allow", "# nothing", Ask),
    ]);
}

#[test]
fn file_rules_are_paths() {
    for (rules, tool, path, want) in [
        ("", "read", "/w/p/a", Allow),
        ("", "read", "/w/q", Ask),
        ("", "edit", "/w/p/a", Ask),
        ("", "write", "/w/p/a", Ask),
        (
            "edit: ask\nedit(src/**): allow",
            "edit",
            "/w/p/src/a/b",
            Allow,
        ),
        ("edit: ask\nedit(src/*): allow", "edit", "/w/p/src/a/b", Ask),
        ("edit: allow\nedit(/etc/**): deny", "edit", "/etc/x/y", Deny),
        ("edit: allow\nedit(/etc/**): deny", "edit", "/w/p/x", Allow),
        ("read(**/.env): deny", "read", "/w/p/.env", Deny),
        ("read(**/.env): deny", "read", "/w/p/a/.env", Deny),
        ("read: deny", "read", "/w/p/a", Deny),
        ("read(~/notes/*): allow", "read", "/home/u/notes/x", Allow),
        ("edit(src/**): allow", "write", "/w/p/src/a", Ask),
    ] {
        let verdict = Call::file(rules, tool, path).verdict();
        assert_eq!(
            verdict.permission, want,
            "{rules:?} {tool} {path}: {}",
            verdict.reason
        );
        assert_eq!(verdict.detail, path);
    }
    for cwd in ["/", "/home", "/home/u"] {
        let call = Call {
            cwd,
            ..Call::file("", "read", "/home/u/.ssh/id")
        };
        assert_eq!(call.says(), Ask, "{cwd}");
    }
}

#[test]
fn what_is_its_own_a_conversation_reads_unasked() {
    for (rules, tool, standing, want) in [
        ("", "read", OWNER, Allow),
        ("", "read", OTHER, Allow),
        ("", "read", NOBODY, Allow),
        ("read: ask", "read", OWNER, Allow),
        ("read: deny", "read", OWNER, Deny),
        ("", "edit", OWNER, Ask),
    ] {
        let call = Call {
            is_own: true,
            standing,
            ..Call::file(rules, tool, "/h/state/outputs/x")
        };
        assert_eq!(call.says(), want, "{rules:?} {tool}");
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
        by: "user".into(),
        prefix: false,
    }
}

#[test]
fn an_approval_lifts_an_ask_and_nothing_else() {
    let given = [
        approval("bash", "git push"),
        approval("edit", "/w/p/a"),
        approval("other", "{\"a\":1}"),
    ];
    let call = |call| Call {
        approvals: &given,
        ..call
    };
    assert_eq!(call(Call::bash("", "git push")).says(), Allow);
    assert_eq!(call(Call::bash("bash: ask", "git push")).says(), Allow);
    assert_eq!(call(Call::bash("bash: deny", "git push")).says(), Deny);
    assert_eq!(
        call(Call::bash("bash(git push): deny", "git push")).says(),
        Deny
    );
    assert_eq!(call(Call::bash("", "git push -f")).says(), Ask);
    assert_eq!(call(Call::bash("", "git push; rm x")).says(), Ask);
    assert_eq!(call(Call::bash("", " git push")).says(), Ask);
    // A path is no word on what is written there.
    assert_eq!(call(Call::file("", "edit", "/w/p/a")).says(), Ask);
    assert_eq!(call(Call::file("", "write", "/w/p/a")).says(), Ask);
    assert_eq!(call(Call::of("", "other", Subject::Other)).says(), Allow);
    assert_eq!(
        call(Call {
            cwd: "/w/q",
            ..Call::bash("", "git push")
        })
        .says(),
        Ask
    );
    // It is what an owner said to be asked about, not what the file says.
    let cron = Call {
        standing: NOBODY,
        ..Call::bash("", "git push")
    };
    assert_eq!(call(cron).says(), Deny);
}
