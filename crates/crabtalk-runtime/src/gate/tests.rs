//! The gate as tables: disguises, precedence, origins.

use super::approvals::Approval;
use super::rules::{Question, Standing, Verdict, judge, standing};
use crabtalk_domain::tool::Subject;
use crabtalk_domain::{ConversationKey, Origin, Permission, PermissionRule, Sender};
use proptest::prelude::*;
use std::fmt::Write as _;
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
    resolve: &'a dyn Fn(&Path) -> Option<PathBuf>,
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
            resolve: &lexical,
        }
    }

    fn bash(rules: &'a str, command: &str) -> Self {
        Self::of(rules, "bash", Subject::Command(command.to_owned()))
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
            resolve: self.resolve,
        })
    }

    fn says(&self) -> Permission {
        self.verdict().permission
    }
}

#[test]
fn no_disguise_passes_an_allow_for_its_first_word() {
    let status =
        "bash(git status*): allow\nbash(echo *): allow\nbash(cat*): allow\nbash(ls*): allow";
    for honest in [
        "git status",
        "git status -s",
        "git  'status'",
        "git status | cat -",
        "git status && echo done",
        "git status 2>&1",
        "git status >/dev/null 2>&1",
        "echo $(git status)",
        "if git status; then echo a; fi",
        "git status\necho b",
        "! git status",
        "(git status; ls)",
        "cat <<E\nhello $x\nE",
        "ls *.rs",
        "cat < src/a",
        "echo 'a; rm -rf /'",
        "echo \"$(echo a)\"",
    ] {
        assert_eq!(Call::bash(status, honest).says(), Allow, "{honest}");
    }
    for disguise in [
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
    ] {
        let verdict = Call::bash(status, disguise).verdict();
        assert_eq!(verdict.permission, Ask, "{disguise}: {}", verdict.reason);
        assert_eq!(verdict.detail, disguise);
        assert!(!verdict.reason.is_empty());
    }
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
    for (rules, command, want) in [
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
        // A wrapper is allowed by its exact words only.
        ("bash(sudo *): allow", "sudo id", Ask),
        ("bash(sudo id): allow", "sudo id", Allow),
        ("bash(sudo id): allow", "sudo id x", Ask),
        ("bash(sh -c 'a; b'): allow", "sh -c \"a; b\"", Allow),
        ("bash(sh -c a b): allow", "sh -c 'a b'", Ask),
        ("bash(X=1 id): allow", "X=1 id", Allow),
        ("bash(sudo id): allow\nbash(id*): deny", "sudo id", Deny),
        (
            "bash(sh -c 'rm x'): deny\nbash: allow",
            "sh -c 'rm x'",
            Deny,
        ),
        // Redirections are files.
        ("bash(a*): allow\nwrite(out/*): allow", "a > out/x", Allow),
        ("bash(a*): allow\nedit(out/*): allow", "a >> out/x", Allow),
        ("bash(a*): allow\nwrite(out/*): allow", "a > out/x/y", Ask),
        ("bash(a*): allow\nwrite(out/*): allow", "a > out/../x", Ask),
        (
            "bash(a*): allow\nwrite(out/*): allow",
            "cd y; a > out/x",
            Ask,
        ),
        (
            "bash(*): allow\nbash(cd*): allow\nwrite(out/*): allow\nwrite: ask",
            "cd y; a > out/x",
            Ask,
        ),
        ("bash(a*): allow\nwrite: allow", "a > /etc/x", Allow),
        ("bash: allow\nwrite(/etc/**): deny", "a > /etc/x", Deny),
        (
            "bash: allow\nedit(/etc/**): deny",
            "sh -c 'a > /etc/x'",
            Deny,
        ),
        ("bash: allow\nwrite(/etc/**): deny", "a > $x", Ask),
        ("bash: allow\nwrite: ask", "a > x", Ask),
        ("bash(a*): allow\nread(/etc/**): deny", "a < /etc/x", Deny),
        ("bash(a*): allow", "a < /w/p/x", Allow),
        ("bash(a*): allow\nread(~/**): allow", "a < ~/x", Allow),
        ("bash(a*): allow\nread(~/**): allow", "a < '~/x'", Allow),
        ("bash(a*): allow\nread: deny", "a < x", Deny),
        ("bash(a*): allow", "# nothing", Ask),
    ] {
        let verdict = Call::bash(rules, command).verdict();
        assert_eq!(
            verdict.permission, want,
            "{rules:?} {command}: {}",
            verdict.reason
        );
    }
}

#[test]
fn links_in_redirections_are_followed() {
    let leads_out = |_: &Path| Some(PathBuf::from("/etc/passwd"));
    let dangling = |_: &Path| None;
    let rules = "bash(a*): allow\nwrite(out/*): allow\nwrite(/etc/**): deny";
    let call = Call {
        resolve: &leads_out,
        ..Call::bash(rules, "a > out/x")
    };
    assert_eq!(call.says(), Deny);
    assert_eq!(
        Call {
            resolve: &dangling,
            ..Call::bash(rules, "a > out/x")
        }
        .says(),
        Ask
    );
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
    assert_eq!(call(Call::file("", "edit", "/w/p/a")).says(), Allow);
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

/// Standing and origin, as people call them.
fn standings() -> Vec<(&'static str, Standing)> {
    let owners = ["user".to_owned()];
    let sender = |name: &str| Sender::new(name).expect("valid");
    let cron = Origin::Cron { id: 1 };
    let event = Origin::Event {
        source: "gateway:x".into(),
    };
    let token = Origin::Client {
        principal: "laptop".into(),
    };
    let key = ConversationKey::new("crab", "user").expect("valid");
    let delegate = Origin::Delegate {
        root: key.clone(),
        parent: key,
        run: 1,
        depth: 1,
    };
    let of = |origin: &Origin, name: &str, root| standing(origin, &sender(name), &owners, root);
    vec![
        ("owner", of(&Origin::local(), "user", None)),
        ("other sender", of(&Origin::local(), "tg:1", None)),
        ("other principal as owner", of(&token, "user", None)),
        ("cron", of(&cron, "user", None)),
        ("event", of(&event, "user", None)),
        (
            "delegate of an owner's run",
            of(&delegate, "delegate:1", Some(OWNER)),
        ),
        (
            "delegate of another's run",
            of(&delegate, "delegate:1", Some(OTHER)),
        ),
        (
            "delegate of a cron's run",
            of(&delegate, "delegate:1", Some(NOBODY)),
        ),
    ]
}

/// Origin x rule x outcome as a Markdown table, for the documentation.
pub(crate) fn table() -> String {
    let ask_first = |call: Call<'static>, rule: &'static str| Call {
        rules: rule,
        ..call
    };
    type Row = (&'static str, fn() -> Call<'static>);
    let rows: [Row; 8] = [
        ("`bash`", || Call::bash("", "make")),
        ("`read` below the working folder", || {
            Call::file("", "read", "/w/p/a")
        }),
        ("`read` below the agent's `cwd`", || Call {
            cwd: "/w/q",
            agent_cwd: Some("/w/p"),
            ..Call::file("", "read", "/w/p/a")
        }),
        ("`read` below a working folder that is the home", || Call {
            cwd: "/home/u",
            ..Call::file("", "read", "/home/u/a")
        }),
        ("`read` elsewhere", || Call::file("", "read", "/etc/hosts")),
        ("`edit`, `write`", || Call::file("", "edit", "/w/p/a")),
        ("a tool that asks by default", || {
            Call::of("", "other", Subject::Other)
        }),
        ("a tool that is allowed by default", || Call {
            default_permission: Allow,
            ..Call::of("", "other", Subject::Other)
        }),
    ];
    let mut text = String::from(
        "| Origin | Call | no rule | `allow` | `ask` | `ask`, approved before | `deny` |\n|---|---|---|---|---|---|---|\n",
    );
    for (who, standing) in standings() {
        for (what, call) in rows {
            let mut cells = Vec::new();
            for (rule, approved) in [
                ("", false),
                ("*: allow", false),
                ("*: ask", false),
                ("*: ask", true),
                ("*: deny", false),
            ] {
                let call = Call {
                    standing,
                    ..ask_first(call(), rule)
                };
                let exact = super::detail(&call.subject, "{\"a\":1}");
                let given = [Approval {
                    cwd: call.cwd.into(),
                    ..approval(call.tool, &exact)
                }];
                let call = Call {
                    approvals: if approved { &given } else { &[] },
                    ..call
                };
                cells.push(match call.says() {
                    Allow => "allow",
                    Ask => "ask",
                    Deny => "deny",
                });
            }
            writeln!(text, "| {who} | {what} | {} |", cells.join(" | "))
                .expect("a string takes it");
        }
    }
    text
}

/// The page of the documentation that shows the table.
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/guide/permission-table.md"
);

/// Where the generated part of the page begins.
const GENERATED: &str = "<!-- generated: what stands below comes from the gate's tests -->\n\n";

#[test]
fn the_documentation_shows_what_the_gate_says() {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let (words, shown) = page.split_once(GENERATED).expect("a generated part");
    let table = table();
    if std::env::var_os("CRABTALK_UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, format!("{words}{GENERATED}{table}")).expect("writable");
    } else {
        assert_eq!(
            shown, table,
            "run the test with CRABTALK_UPDATE_DOCS=1 and look at what changed"
        );
    }
}

#[test]
fn origins_decide_who_is_asked() {
    let table = table();
    for line in [
        "| owner | `bash` | ask | allow | ask | allow | deny |",
        "| owner | `read` below the working folder | allow | allow | ask | allow | deny |",
        "| owner | `read` below the agent's `cwd` | ask | allow | ask | allow | deny |",
        "| owner | `read` below a working folder that is the home | ask | allow | ask | allow | deny |",
        "| owner | a tool that is allowed by default | allow | allow | ask | allow | deny |",
        "| other sender | `bash` | ask | allow | ask | allow | deny |",
        "| other sender | `read` below the working folder | ask | allow | ask | allow | deny |",
        "| other sender | `read` below the agent's `cwd` | allow | allow | ask | allow | deny |",
        "| other sender | a tool that is allowed by default | allow | allow | ask | allow | deny |",
        "| other principal as owner | `read` below the working folder | ask | allow | ask | allow | deny |",
        "| cron | `bash` | deny | allow | deny | deny | deny |",
        "| cron | `read` below the agent's `cwd` | allow | allow | deny | deny | deny |",
        "| cron | `edit`, `write` | deny | allow | deny | deny | deny |",
        "| cron | a tool that is allowed by default | allow | allow | deny | deny | deny |",
        "| event | `bash` | deny | allow | deny | deny | deny |",
        "| delegate of an owner's run | `bash` | ask | allow | ask | allow | deny |",
        "| delegate of an owner's run | `read` below the working folder | allow | allow | ask | allow | deny |",
        "| delegate of another's run | `read` below the working folder | ask | allow | ask | allow | deny |",
        "| delegate of a cron's run | `bash` | deny | allow | deny | deny | deny |",
    ] {
        assert!(table.lines().any(|l| l == line), "missing {line}\n{table}");
    }
    assert_eq!(table.lines().count(), 2 + 8 * 8);
}

#[test]
fn reserved_senders_are_no_owners() {
    let owners = ["cron".to_owned(), "user".to_owned()];
    let cron = Sender::new("cron").expect("valid");
    assert_eq!(standing(&Origin::local(), &cron, &owners, None), OTHER);
}

proptest! {
    /// However an allowed and a forbidden command are put together, the whole
    /// is never allowed.
    #[test]
    fn no_composition_hides_a_forbidden_command(
        allowed in prop::sample::select(vec!["git status", "ls -l", "echo 'a b'", "git status $x", "ls *.rs"]),
        forbidden in prop::sample::select(vec!["rm -rf x", "\\rm x", "'rm' x", "/bin/rm x", "r\"m\" $y", "$z x"]),
        shapes in prop::collection::vec(
            prop::sample::select(vec![
                "A; F", "F; A", "A && F", "F && A", "A || F", "A | F", "F | A", "A & F", "A\nF", "A |& F",
                "A $(F)", "A \"$(F)\"", "A `F`", "A \"`F`\"", "(A; F)", "{ A; F; }", "if A; then F; fi", "if F; then A; fi",
                "while A; do F; done", "for i in $(F); do A; done", "case a in a) A;; b) F;; esac", "! F", "time F",
                "A <(F)", "A <<< $(F)", "A <<E\n$(F)\nE\n", "X=$(F) A", "X=$(F)", "f() { F; }; A", "env F", "eval F",
                "A > $(F)", "A ${x:-$(F)}", "A $(A; F)", "A # \nF", "A \\\n; F", "coproc F", "xargs F", "A;F;A",
            ]),
            1..4,
        ),
    ) {
        let rules = "bash(git status*): allow\nbash(ls*): allow\nbash(echo *): allow\nbash(for*): allow\nbash(if *): allow\nbash(f): allow";
        let command = shapes.iter().fold(forbidden.to_owned(), |inner, shape| {
            // Within backquotes another one ends them, it does not nest.
            let nests = shape.contains('`') && inner.contains('`');
            let shape = if nests { "A $(F)" } else { shape };
            shape.replace('A', allowed).replace('F', &inner)
        });
        let narrow = Call::bash(rules, &command).verdict();
        prop_assert_ne!(narrow.permission, Allow, "{}", command);
        let denied = Call::bash("bash: allow\nbash(rm *): deny", &command).verdict();
        prop_assert_ne!(denied.permission, Allow, "{}", command);
    }

    #[test]
    fn any_rule_and_call_has_a_verdict(pattern in "\\PC{0,30}", command in "\\PC{0,60}") {
        let rule = format!("bash({}): allow", pattern.replace('\n', " "));
        Call::bash(&rule, &command).verdict();
        Call::file(&rule, "read", &format!("/{command}")).verdict();
    }
}
