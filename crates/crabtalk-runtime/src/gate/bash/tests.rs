//! What is taken out of a command, and that nothing breaks it.

use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// One line per part and file: `!` before what is guarded, what lies behind it
/// in brackets (`~` if only possible), files as `<` and `>`.
fn shown(command: &str) -> String {
    fn part(p: &Part) -> String {
        let inner: Vec<String> = p
            .inner
            .iter()
            .map(|i| format!("{}{}", if i.sure { "" } else { "~" }, part(&i.part)))
            .collect();
        let inner = if inner.is_empty() {
            String::new()
        } else {
            format!(" [{}]", inner.join(" | "))
        };
        format!(
            "{}{}{inner}",
            if p.guard.is_some() { "!" } else { "" },
            p.text
        )
    }
    let script = split(command);
    let mut lines: Vec<String> = script.parts.iter().map(part).collect();
    lines.extend(script.files.iter().map(|f| {
        let path = f.path.as_deref().unwrap_or("?");
        let home = if f.tilde { "(home)" } else { "" };
        let moved = if f.moved { "(moved)" } else { "" };
        format!("{}{path}{home}{moved}", if f.write { '>' } else { '<' })
    }));
    lines.join(", ").replace(HOLE, "_")
}

#[test]
fn every_simple_command_is_found() {
    for (command, want) in [
        ("git status", "git status"),
        ("a; b && c || d | e |& f\ng", "a, b, c, d, e, f, g"),
        ("(a; b) && { c; }", "a, b, c"),
        ("if a; then b; elif c; then d; else e; fi", "a, b, c, d, e"),
        ("while a; do b; done; until c; do d; done", "a, b, c, d"),
        ("case x in a|b) c;; *) d;; esac", "c, d"),
        ("! a; time b", "a, b"),
        ("a $(b `c`) \"$(d)\"", "c, b _, d, a _ _"),
        ("a <<< \"$(b)\"", "b, a"),
        ("a <<E\n$(b) $c\nE\nd", "b, a, d"),
        ("a <<'E'\n$(b)\nE", "a"),
        ("a # b; c", "a"),
        ("", ""),
        ("# x", ""),
    ] {
        assert_eq!(shown(command), want, "{command}");
    }
}

#[test]
fn words_lose_their_quotes_and_keep_their_unknowns() {
    for (command, want) in [
        ("g\"i\"t 'sta'tus", "git status"),
        (r"\g\i\t st\atus", "git status"),
        ("a\\\nb c", "ab c"),
        ("a \"b $x c\" $y", "a b _ c _"),
        (r#"a "\$x \" \\ \n""#, r#"a $x " \ \n"#),
        ("a *.rs {b,c} ?x", "a _.rs _ _x"),
        ("a {} 'x*'", "a {} x*"),
        ("a $'b'", "a _"),
        ("a $((1+2)) ${#x} ${x}", "a _ _ _"),
        ("a ~/x ~u/y 'b'~", "a ~/x _u/y b~"),
        ("echo $ 5$ a$,", "echo $ 5$ a$,"),
    ] {
        assert_eq!(shown(command), want, "{command}");
    }
}

#[test]
fn what_cannot_be_known_is_a_part_of_its_own() {
    for command in [
        "${x:=$(rm y)} a",
        "a ${x@P}",
        "a ${!x}",
        "a ${x[$(rm y)]}",
        "a $((x))",
        "a $[1]",
        "a ${ rm x; }",
        "a $\"b\"",
        "a &",
        "f() { a; }",
        "coproc a",
        "for i in a; do b; done",
        "for ((;;)); do b; done",
        "[[ -v a ]]",
        "((a))",
        "a <(b)",
        "a {x}>f",
        "x=(1)",
        "a <<E\n${x@P}\nE",
        "a <<E[x>f",
        "a <<-E[[x=2>f",
        "if",
        "a 'b",
        "a \u{a0}b",
        "a\rb",
        "a\0b",
        "a \u{ffff}",
    ] {
        let shown = shown(command);
        assert!(
            shown.split(", ").any(|part| part == "!_"),
            "{command}: {shown}"
        );
    }
}

#[test]
fn redirections_are_files() {
    for (command, want) in [
        (
            "a > f >> g >| h &> i &>> j >& k 2> l",
            "a, >f, >g, >h, >i, >j, >k, >l",
        ),
        ("a < f <> g", "a, <f, <g, >g"),
        ("a 2>&1 >&2 <&3 2>&-", "a"),
        ("> f", ">f"),
        ("a > $x", "a, >?"),
        ("a > *", "a, >?"),
        ("a > ~/x", "a, >~/x(home)"),
        ("a > '~/x'", "a, >~/x"),
        ("{ a; } > f; (b) > g", "a, b, >f, >g"),
        ("if a; then b; fi > f", "a, b, >f"),
        ("cd x && a > f", "cd x, a, >f(moved)"),
        ("sh -c 'a > f'", "!sh -c a > f [a], >f"),
    ] {
        assert_eq!(shown(command), want, "{command}");
    }
}

#[test]
fn wrappers_are_guarded_and_seen_through() {
    for (command, inner) in [
        ("env X=1 -u Y rm x", "rm x"),
        ("X=1 rm x", "rm x"),
        ("sudo -u root rm x", "rm x"),
        ("nice -n 5 rm x", "rm x"),
        ("timeout -k 3 5 rm x", "rm x"),
        ("nohup rm x", "rm x"),
        ("command rm x", "rm x"),
        ("exec rm x", "rm x"),
        ("ssh host rm x", "rm x"),
        ("xargs -n 1 rm x", "rm x _"),
        ("sh -c 'rm x'", "rm x"),
        ("bash -ec 'a; rm x'", "rm x"),
        ("bash <<E\nrm x\nE", "rm x"),
        ("bash <<< 'rm x'", "rm x"),
        ("env nice sh -c 'rm x'", "rm x"),
        ("eval rm x", "rm x"),
        ("eval 'rm' \"x\"", "rm x"),
        ("trap 'rm x' EXIT", "rm x"),
        ("alias ls='rm x'", "rm x"),
        ("alias ls=rm", "rm _"),
        ("find . -exec rm x ';'", "rm x"),
        ("find . -name a -ok rm {} +", "rm _"),
        ("git -c a=b push x", "git push x"),
        ("git -C d push x", "git push x"),
        ("watch 'rm x'", "rm x"),
    ] {
        let shown = shown(command);
        assert!(shown.starts_with('!'), "{command}: {shown}");
        assert!(
            shown
                .split(['[', ']', '|'])
                .any(|part| part.trim().trim_start_matches('!') == inner),
            "{command}: {shown}"
        );
    }
    assert_eq!(shown("/bin/rm x"), "/bin/rm x [rm x]");
}

fn check_guarded(commands: &[&str]) {
    for command in commands {
        let shown = shown(command);
        assert!(shown.contains('!'), "{command}: {shown}");
    }
}

#[test]
fn words_that_are_another_program_or_change_one_are_guarded() {
    check_guarded(&[
        "$x a",
        "'git status'",
        "'' a",
        "g? a",
        "{rm,x}",
        "~u/rm x",
        "X=1",
        "export PATH=x",
        "read PATH",
        "set -x",
        ". f",
        "source f",
        "hash -p x git",
        "python3 -c x",
        "python",
        "python - a",
        "perl -ne x",
        "node -e x",
        "php -r x",
        "perl -Mx a",
        "python3.12 -Ic x",
        "ruby $x",
    ]);
}

#[test]
fn options_that_run_programs_are_guarded() {
    check_guarded(&[
        "git -c core.pager=x status",
        "git -ccore.pager=x status",
        "git --exec-path=x status",
        "git --config-env=a=b status",
        "git $x status",
        "git --git-dir x status",
        "git submodule foreach x",
        "git rebase --exec x",
        "git rebase -x y",
        "git bisect run x",
        "git config core.pager x",
        "git clone --upload-pack=x y",
        "git grep -Oless x",
        "git push --receive-p x",
        "git archive --output=x HEAD",
        "find . -delete",
        "find . $x",
        "find . -fprint x",
        "find * -name a",
        "tar xf a --to-command=x",
        "tar --checkpoint-a=exec=x",
        "tar -cIx f",
        "tar cIf x y",
        "tar $x",
        "rsync -e x a b",
        "rsync -ave x a b",
        "rsync --rsh=x",
        "vim -c x",
        "less +x",
        "man -P x y",
        "make SHELL=x",
        "make -f x",
        "make --eval x",
        "awk 'BEGIN{system(\"x\")}'",
        "awk '{print | \"x\"}'",
        "awk '{print > \"x\"}'",
        "awk -f x",
        "awk \"$x\"",
        "sed -n '1e x'",
        "sed 's/a/b/e'",
        "sed 's/a/b/w f'",
        "sed 'w f'",
        "sed -i 's/a/b/' f",
        "sed -f x",
        "sed -e 'p' -e 'e x'",
        "sed --expr='e x' f",
        "sed '1,2{e x\n}'",
        "sed 'p;e x'",
        "sed 'r f'",
        "sort -o f",
        "sort --outp=f",
        "split --filter=x",
        "fd -x rm",
        "rg --pre x y",
        "cargo --config x",
        "printf -v PATH x",
        "test -v 'a[$(x)]'",
        "[ -v x ]",
        "busybox rm x",
        "xargs",
        "parallel rm",
    ]);
}

#[test]
fn usual_commands_are_not_guarded() {
    for command in [
        "git status -s",
        "git --no-pager log",
        "git log --oneline -5",
        "git commit -m 'a; b $(c)'",
        "git push origin main",
        "git rebase main",
        "git fetch origin",
        "git diff *.rs",
        "git log $x",
        "find . -name '*.rs' -type f",
        "find . -name '{}'",
        "ls *.rs",
        "grep -rn 'a|b' src",
        "sed -n '10,20p' f",
        "sed 's/a\\/b/c/g' f",
        "sed '/x/d; s|a|b|2' f",
        "sed -e p f",
        "sed -n '$p' f",
        "awk '{print $1}' f",
        "awk -F: '$1 == \"a\" {print $2}' f",
        "tar xzf a.tgz",
        "tar -czf a.tgz b",
        "rsync -av a b",
        "sort -rn f",
        "cargo test -p x",
        "python3 script.py -c",
        "python -m pytest -x",
        "python --version",
        "node a.js",
        "make test",
        "make -j4",
        "cat f",
        "echo a > /dev/null",
        "[ -f x ]",
        "test -d x",
        "printf '%s' a",
        "head -n 5 f",
        "curl -s http://x?y",
    ] {
        let shown = shown(command);
        assert!(!shown.contains('!'), "{command}: {shown}");
    }
}

/// Long inputs of every repeated token, on a small stack as in a runtime's
/// worker: they must come back, soon, whatever they say.
#[test]
fn deep_and_long_input_is_bounded() {
    const LIMIT: Duration = Duration::from_secs(15);
    let tokens = [
        "(",
        "( ",
        "{ ",
        "$(",
        "\"$(",
        "$((",
        "${a:-",
        "`",
        "\\`",
        "<(",
        "[",
        "[[ ",
        "[[ ! ",
        "if ",
        "while a; do ",
        "case a in a) ",
        "f() { ",
        "function f { ",
        "!",
        "! ",
        "a;",
        "a&",
        "a|",
        "a&&",
        "\n",
        "a\n",
        "<<E ",
        "<<E\n",
        "9>",
        "> f ",
        "'",
        "\"",
        "\\",
        "$",
        "{a,",
        "((",
        "((1+",
        "((-",
        "((~",
        "((a?",
        "a=( ",
        "time ",
        "coproc ",
        "env ",
        "sh -c ",
        "xargs a ",
        "sudo -",
        "-",
        "$'",
        "$[",
        "${",
        "~",
        "*",
        "a ",
        "a=b ",
        "for a in ",
        "select a in ",
        "eval ",
        "find -exec ",
        "&",
        ";",
        "#",
        "é",
        "((1?",
        "\u{1f980}",
        "for ((",
        "$((1?",
        "$((~",
        "$((-",
    ];
    for token in tokens {
        for count in [40, 250, MAX_BYTES / token.len()] {
            for tail in ["", "rm x )"] {
                let text = token.repeat(count) + tail;
                let begun = Instant::now();
                split(&text);
                assert!(
                    begun.elapsed() < LIMIT,
                    "{token:?} x {count}: {:?}",
                    begun.elapsed()
                );
            }
        }
    }
}

#[test]
fn nested_scripts_end() {
    let mut command = "rm x".to_owned();
    for _ in 0..12 {
        command = format!("sh -c '{}'", command.replace('\'', r"'\''"));
        split(&command);
    }
    assert!(split(&"env ".repeat(4_000)).parts[0].guard.is_some());
}

proptest! {
    #[test]
    fn any_text_is_taken_apart(text in "\\PC{0,200}") {
        split(&text);
    }

    #[test]
    fn any_shell_like_text_is_taken_apart(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "a", " ", "\n", ";", "&", "|", "&&", "(", ")", "{", "}", "$", "$(", "${", "`", "'",
                "\"", "\\", "<", ">", "<<", "<<<", "E", "if", "then", "fi", "for", "in", "do",
                "done", "case", "esac", "[[", "]]", "((", "))", "!", "=", "x=", "#", "*", "[", "]",
                "~", "{a,b}", "1", "99999999999999999999", "sh -c ", "env ", "$'", "é", "\t",
            ]),
            0..60,
        )
    ) {
        split(&tokens.concat());
    }
}
