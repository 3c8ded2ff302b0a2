//! Who is asked of what, as a table that the documentation shows.

use super::*;
use crabtalk_domain::{ConversationKey, Origin, Principal, Sender, TokenName};
use std::fmt::Write as _;

/// Standing and origin, as people call them.
fn standings() -> Vec<(&'static str, Standing)> {
    let owners = ["user".to_owned()];
    let sender = |name: &str| Sender::new(name).expect("valid");
    let cron = Origin::Cron {
        id: 1,
        by: String::new(),
    };
    let event = Origin::Event {
        source: "gateway:x".into(),
        depth: 1,
    };
    let token = Origin::Client {
        principal: Principal::Token(TokenName::new("laptop").expect("a name")),
    };
    let key = ConversationKey::new("crab", "user").expect("valid");
    let delegate = Origin::Delegate {
        root: key.clone(),
        parent: key,
        run: 1,
        depth: 1,
        principal: Some(Principal::Owner),
    };
    let of = |origin: &Origin, name: &str, root| standing(origin, &sender(name), &owners, root);
    vec![
        ("owner", of(&Origin::local(), "user", None)),
        ("other sender", of(&Origin::local(), "tg:1", None)),
        ("other principal as owner", of(&token, "user", None)),
        ("cron", of(&cron, "user", None)),
        // Whatever the root is, it lends no authority.
        (
            "cron with `asks = \"inbox\"`",
            of(&cron, "user", Some(OWNER)),
        ),
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
fn table() -> String {
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
                let exact = crate::gate::detail(&call.subject, "{\"a\":1}");
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
    assert_eq!(table.lines().count(), 2 + 9 * 8);
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
