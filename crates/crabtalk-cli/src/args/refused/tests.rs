use super::*;
use clap::error::ErrorKind;

fn argv(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

#[track_caller]
fn said(argv: &[OsString]) -> String {
    let error = Cli::read(argv).expect_err("it makes no sense");
    let Error::Usage(said) = usage(&error, argv) else {
        panic!("{error:?}")
    };
    said
}

#[track_caller]
fn assert_said(rows: &[(&str, &str)]) {
    for (line, says) in rows {
        assert_eq!(said(&argv(line)), *says, "{line}");
    }
}

#[test]
fn a_value_that_does_not_fit_says_what_would() {
    let rows = [
        (
            "crabtalk history --limit -3",
            "`--limit <N>` cannot be `-3`: write a whole number, 1 or more; see `crabtalk history --help`",
        ),
        (
            "crabtalk cron rm -3",
            "`<ID>` cannot be `-3`: write a whole number, 0 or more; see `crabtalk cron rm --help`",
        ),
        (
            "crabtalk cron rm 99999999999999999999999",
            "`<ID>` cannot be `99999999999999999999999`: that number is larger than any that counts; see `crabtalk cron rm --help`",
        ),
        (
            "crabtalk history --before 18446744073709551616",
            "`--before <INDEX>` cannot be `18446744073709551616`: that number is larger than any that counts; see `crabtalk history --help`",
        ),
        (
            "crabtalk top --delay 18446744073709551616",
            "`--delay <SECS>` cannot be `18446744073709551616`: write a whole number from 1 to 3600; see `crabtalk top --help`",
        ),
        (
            "crabtalk stats --by week",
            "`--by <WHAT>` cannot be `week`, it is one of: day, agent, model, conversation, run; see `crabtalk stats --help`",
        ),
        (
            "crabtalk stats --by",
            "`--by <WHAT>` needs a value: day, agent, model, conversation, run; see `crabtalk stats --help`",
        ),
        (
            "crabtalk history --limit",
            "`--limit <N>` needs a value; see `crabtalk history --help`",
        ),
        (
            "crabtalk --agent cron --no-start history --limit",
            "`--limit <N>` needs a value; see `crabtalk history --help`",
        ),
        (
            "crabtalk history --limit 1 --limit 2",
            "`--limit <N>` can be given once; see `crabtalk history --help`",
        ),
        (
            "crabtalk history --as tg:1 --project x",
            "`--as <SENDER>` and `--project <NAME>` exclude each other; see `crabtalk history --help`",
        ),
    ];
    assert_said(&rows);
}

#[test]
fn words_that_make_no_command_say_what_would() {
    let rows = [
        (
            "crabtalk history --nope",
            "`crabtalk history` has no option `--nope`; see `crabtalk history --help`",
        ),
        (
            "crabtalk history --limt 3",
            "`crabtalk history` has no option `--limt`; did you mean `--limit`?",
        ),
        (
            "crabtalk steer --nope",
            "`crabtalk steer` has no option `--nope`; if it is text, write `-- --nope`; see `crabtalk steer --help`",
        ),
        (
            "crabtalk deny 1 --reason -maybe",
            "`crabtalk deny` has no option `-m`; if it is what `--reason` says, write `--reason=-maybe`; see `crabtalk deny --help`",
        ),
        (
            "crabtalk daemon start extra",
            "`crabtalk daemon start` takes no `extra`; text with spaces goes in quotes; see `crabtalk daemon start --help`",
        ),
        (
            "crabtalk mcps add files server",
            "`crabtalk mcps add` takes `server` behind `--` alone, as [PROGRAM]...; see `crabtalk mcps add --help`",
        ),
        (
            "crabtalk cron frobnicate",
            "`crabtalk cron` has no command `frobnicate`; see `crabtalk cron --help`",
        ),
        (
            "crabtalk cron ad",
            "`crabtalk cron` has no command `ad`; did you mean `add`?",
        ),
        (
            "crabtalk daemon restrat",
            "`crabtalk daemon` has no command `restrat`; did you mean `restart`?",
        ),
        (
            "crabtalk cron rm",
            "`crabtalk cron rm` needs <ID>; see `crabtalk cron rm --help`",
        ),
        (
            "crabtalk config set",
            "`crabtalk config set` needs <KEY> and <VALUE>; see `crabtalk config set --help`",
        ),
    ];
    assert_said(&rows);
}

/// An empty key would mean the whole file to the daemon.
#[test]
fn an_empty_word_is_no_key_and_no_agents_name() {
    for (line, says) in [
        (
            "crabtalk config set KEY x",
            "`<KEY>` needs a value; see `crabtalk config set --help`",
        ),
        (
            "crabtalk config unset KEY",
            "`<KEY>` needs a value; see `crabtalk config unset --help`",
        ),
        (
            "crabtalk agents new KEY",
            "`<NAME>` needs a value; see `crabtalk agents new --help`",
        ),
    ] {
        let mut argv = argv(line);
        for word in argv.iter_mut().filter(|word| *word == "KEY") {
            word.clear();
        }
        assert_eq!(said(&argv), says, "{line}");
    }
}

#[test]
fn a_word_of_any_length_and_of_any_bytes_is_shown_in_a_line() {
    let long = argv(&format!("crabtalk history --{}", "x".repeat(70_000)));
    assert!(said(&long).len() < 300, "{}", said(&long));
    let mut lines = argv("crabtalk stats --by");
    lines.push("a\nb\u{1b}[2J".into());
    assert!(!said(&lines).contains(char::is_control));
}

#[test]
fn a_word_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStringExt;
    let mut argv = argv("crabtalk ask");
    argv.push(OsString::from_vec(vec![b'a', 0xff]));
    assert_eq!(
        said(&argv),
        "`a\u{fffd}` is not valid UTF-8; see `crabtalk ask --help`"
    );
}

/// Every way of being refused of every command has words of ours.
#[test]
fn no_command_answers_in_the_words_of_the_parser() {
    fn walk(command: &Command, path: &[String], found: &mut Vec<Vec<String>>) {
        found.push(path.to_vec());
        for below in command.get_subcommands() {
            let path = [path, &[below.get_name().to_owned()]].concat();
            walk(below, &path, found);
        }
    }
    let mut found = Vec::new();
    let mut all = Cli::command();
    all.build();
    walk(&all, &["crabtalk".to_owned()], &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for path in found {
        for bad in [&["--nope"][..], &["-Z"], &["--agent"], &["--limit", "-3"]] {
            let line = path.iter().map(String::as_str).chain(bad.iter().copied());
            let argv: Vec<OsString> = line.map(OsString::from).collect();
            let error = match Cli::read(&argv) {
                Err(error) if error.kind() == ErrorKind::DisplayHelp => continue,
                Err(error) => error,
                // What a command without such an option makes of it as text.
                Ok(_) => continue,
            };
            let Error::Usage(said) = usage(&error, &argv) else {
                panic!("{argv:?}")
            };
            for theirs in ["unexpected argument", "For more information", "\n", "tip:"] {
                assert!(!said.contains(theirs), "{argv:?}: {said}");
            }
            assert!(said.starts_with('`'), "{argv:?}: {said}");
        }
    }
}
