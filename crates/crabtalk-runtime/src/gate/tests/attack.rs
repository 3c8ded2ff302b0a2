//! What rules allow is run by a real bash, beside a canary.
//!
//! Commands are made of all of bash's syntax. Those that narrow rules allow
//! run in a private folder, as the gate printed them. Then nothing may have
//! run but the judged words, and nothing may have been written.
//!
//! `cargo xtask attack` does this for long; a short sample is a test like any
//! other. Both say their seed.

mod grammar;
mod stage;

use super::*;
use crate::gate::plain::{Piece, Plain, Simple, Word};
use grammar::Dice;
use stage::{Programs, Stage, found};
use std::io::Write;
use std::time::{Duration, Instant};

/// Seconds to go on for, and the seed: set by `cargo xtask attack`.
const SECONDS: &str = "CRABTALK_ATTACK_SECS";
const SEED: &str = "CRABTALK_ATTACK_SEED";

/// Commands of the sample in the suite, of each kind.
const SAMPLE: u64 = 600;

/// Rules of which only the recorded words may come.
const RECORDED: &str = "bash(git status*): allow\nbash(ls*): allow\nbash(cat *): allow\n\
    bash(grep *): allow\nbash(cargo test*): allow\nbash(show *): allow\nbash(sort *): allow\n\
    bash(echo *): allow\nbash(printf *): allow\nbash([ *): allow\nbash(test *): allow\n\
    bash(cd *): allow\nbash(show): allow\nbash(env show): allow";

/// Rules of programs that read, and must not write. `perl *` is none of them: it
/// runs the file that it is given by that file's first line.
const READING: &str = "bash(git log*): allow\nbash(git status*): allow\nbash(git diff*): allow\n\
    bash(git show*): allow\nbash(git grep*): allow\nbash(git ls-files*): allow\n\
    bash(git blame*): allow\nbash(git rev-parse*): allow\nbash(git ls-remote*): allow\n\
    bash(git branch --list*): allow\nbash(sort *): allow\nbash(uniq *): allow\nbash(find *): allow\n\
    bash(sed *): allow\nbash(awk *): allow\nbash(shuf *): allow\nbash(make *): allow\n\
    bash(grep *): allow\nbash(less *): allow\nbash(python3 *): allow\n\
    bash(tar -t*): allow\nbash(tar t*): allow\nbash(xargs *): allow\nbash(env *): allow\n\
    bash(cat *): allow\nbash(head *): allow\nbash(date *): allow\nbash(diff *): allow\n\
    bash(tee *): allow\nbash(dd *): allow\nbash(let *): allow\n\
    bash(hash *): allow\nbash(printf *): allow\nbash(test *): allow\nbash(file *): allow\n\
    bash(sqlite3 *): allow\nbash(man *): allow\nbash(rsync *): allow\nbash(vim *): allow\n\
    bash(valgrind *): allow\nbash(gcc -fsyntax-only *): allow\nbash(tree *): allow\nbash(cut *): allow";

/// What was tried, and what of it was allowed and run.
#[derive(Default)]
struct Count {
    tried: u64,
    ran: u64,
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn nothing_but_the_judged_words_runs() {
    if found("bash").is_none() {
        println!("SKIPPED: nothing_but_the_judged_words_runs: bash not installed");
        return;
    }
    let long = variable(SECONDS).map(Duration::from_secs);
    let seed = variable(SEED).unwrap_or(match long {
        Some(_) => std::process::id().into(),
        None => 1,
    });
    for programs in [Programs::Recorded, Programs::Real] {
        if long.is_some() {
            say(&format!("{programs:?}: seed {seed}"));
        }
        let (begun, mut count) = (Instant::now(), Count::default());
        let (stage, mut dice) = (Stage::new(programs), Dice::new(seed));
        let mut told = Instant::now();
        while long.map_or(count.tried < SAMPLE, |long| begun.elapsed() < long / 2) {
            attack(&stage, &mut dice, &mut count, seed);
            if long.is_some() && told.elapsed() > Duration::from_secs(30) {
                told = Instant::now();
                say(&format!(
                    "{programs:?}: {} tried, {} ran",
                    count.tried, count.ran
                ));
            }
        }
        say(&format!(
            "{programs:?}, seed {seed}: {} commands, {} allowed and run, none did anything else",
            count.tried, count.ran
        ));
        assert!(
            count.ran > 0,
            "nothing was allowed: the grammar is of no use"
        );
    }
}

fn say(text: &str) {
    println!("{text}");
    let _ = std::io::stdout().flush();
}

fn attack(stage: &Stage, dice: &mut Dice, count: &mut Count, seed: u64) {
    let (rules, text) = match stage.programs {
        Programs::Recorded => (RECORDED, grammar::command(dice)),
        Programs::Real => (READING, grammar::options(dice)),
    };
    count.tried += 1;
    let verdict = stage.judge(rules, &text);
    let Some(run) = verdict.run else {
        return;
    };
    count.ran += 1;
    let plain = Plain::read(&run.text, None).unwrap_or_else(|why| {
        panic!(
            "seed {seed}, number {}: the print {:?} {why}",
            count.tried, run.text
        )
    });
    assert_eq!(plain.printed(), run.text, "a print is printed alike");
    let seen = stage.run(&run);
    let found = stage.changes();
    let foreign = match stage.programs {
        Programs::Recorded => seen
            .iter()
            .find(|argv| !plain.commands.iter().any(|c| may_be(c, argv))),
        Programs::Real => None,
    };
    assert!(
        found.is_empty() && foreign.is_none(),
        "seed {seed}, number {}: {text:?}\nran as {:?}\nfound {found:?}\nran {foreign:?}",
        count.tried,
        run.text
    );
}

/// Whether a program may have been given these words for a judged command.
fn may_be(command: &Simple, argv: &[String]) -> bool {
    fn from(words: &[Word], argv: &[String]) -> bool {
        match words.split_first() {
            None => argv.is_empty(),
            Some((word, rest)) if word.has_glob() => (1..=argv.len()).any(|many| {
                argv[..many].iter().all(|arg| fits(word, arg)) && from(rest, &argv[many..])
            }),
            Some((word, rest)) => argv
                .split_first()
                .is_some_and(|(arg, others)| *arg == word.text() && from(rest, others)),
        }
    }
    from(&command.words, argv)
}

/// Whether a glob may yield a name: the pieces that stand for themselves come
/// in their order, the first at the front.
fn fits(word: &Word, arg: &str) -> bool {
    let Some(mut rest) = arg.strip_prefix(word.sure_start()) else {
        return false;
    };
    for piece in word.pieces.iter().skip(1) {
        if let Piece::Text(text) = piece {
            match rest.find(text.as_str()) {
                Some(at) => rest = &rest[at + text.len()..],
                None => return false,
            }
        }
    }
    !arg.starts_with('-') || word.sure_start().starts_with('-')
}

#[test]
fn bash_passes_the_judged_words() {
    if found("bash").is_none() {
        println!("SKIPPED: bash_passes_the_judged_words: bash not installed");
        return;
    }
    /// Commands in one run of bash.
    const BATCH: usize = 200;
    let stage = Stage::new(Programs::Recorded);
    let mut dice = Dice::new(variable(SEED).unwrap_or(7));
    for _ in 0..5 {
        let mut lines = Vec::new();
        while lines.len() < BATCH {
            let words: Vec<String> = (0..1 + dice.below(4)).map(|_| dice.quoted_word()).collect();
            let text = format!("show {}", words.join(" "));
            if let Ok(plain) = Plain::read(&text, Some(Path::new("/home/u"))) {
                lines.extend(plain.commands.into_iter().filter(|c| c.name() == "show"));
            }
        }
        let print: Vec<String> = lines.iter().map(Simple::printed).collect();
        let seen = stage.run(&print.join("\n").into());
        assert_eq!(seen.len(), lines.len());
        for (line, argv) in lines.iter().zip(seen) {
            assert!(may_be(line, &argv), "{:?} became {argv:?}", line.printed());
        }
    }
}
