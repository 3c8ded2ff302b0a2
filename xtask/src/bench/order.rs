//! Finds out which functions of the daemon run, for the linker (RFC 0221).
//!
//! Invariant: what each turn runs comes first, then what ran at all, both in
//! the order in which they lie in the program; the rest is not named.

use super::client::Client;
use super::daemon::{Home, program};
use super::server::{ModelServer, Plan};
use anyhow::{Context, ensure};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where it is kept, in the workspace.
const ORDER: &str = "crates/crabtalk/link-order.txt";

/// Turns of the two runs that are compared.
const TURNS: [u64; 2] = [20, 60];

/// An answer of a few words.
const BRIEF: Plan = Plan {
    latency_us: 0,
    chunks: 4,
    gap_us: 0,
    group: 0,
};

/// What else is asked of a daemon day by day.
const COMMANDS: [&[&str]; 6] = [
    &["conversations"],
    &["history", "--agent", "crab"],
    &["agents"],
    &["models"],
    &["stats"],
    &["search", "something"],
];

/// A function's first instruction, and how many of its instructions ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ran {
    at: u64,
    instructions: u64,
}

/// Writes the order of the functions of the binary beside this one.
pub(crate) fn write() -> anyhow::Result<()> {
    let room = super::room()?;
    let server = ModelServer::start(room.path())?;
    let [few, many] = TURNS;
    let agents = [("crab", BRIEF)];
    let few = profiled(&server, &agents, few)?;
    let mut many = profiled(&server, &agents, many)?;
    // As it is found where nothing is configured.
    for (name, ran) in profiled(&server, &[], 1)? {
        many.entry(name).or_insert(Ran {
            instructions: 0,
            ..ran
        });
    }
    ensure!(
        !many.is_empty(),
        "the profile names no functions; was the program stripped?"
    );
    let names = ordered(&few, &many);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(ORDER);
    let before = fs::read_to_string(&file).unwrap_or_default();
    let known = before.lines().filter(|name| many.contains_key(*name));
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{} of {} names in {ORDER} still ran; {} names now",
        known.count(),
        before.lines().count(),
        names.len()
    )?;
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Functions of the daemon that ran in so many turns and whatever else it did.
fn profiled(
    server: &ModelServer,
    agents: &[(&str, Plan)],
    turns: u64,
) -> anyhow::Result<BTreeMap<String, Ran>> {
    let home = Home::new(server, "step", agents)?;
    let out = home.path().join("callgrind.out");
    let valgrind = [
        "valgrind".into(),
        "--tool=callgrind".into(),
        "--demangle=no".into(),
        "--dump-instr=yes".into(),
        format!("--callgrind-out-file={}", out.display()),
    ];
    let daemon = home.start_as(&program()?, &valgrind)?;
    let mut client: Client = daemon.client()?;
    for _ in 0..turns {
        client.turn("crab", "user")?;
    }
    for command in COMMANDS {
        let mut run = Command::new(program()?);
        run.args(command).env("CRABTALK_HOME", home.path());
        let status = run.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "crabtalk {} failed", command.join(" "));
    }
    daemon.stop()?;
    let text = fs::read_to_string(&out).context("valgrind left no profile")?;
    Ok(functions(&text, &program()?))
}

/// Those of which more ran in more turns, then the others.
fn ordered<'a>(few: &BTreeMap<String, Ran>, many: &'a BTreeMap<String, Ran>) -> Vec<&'a str> {
    let more = TURNS[1] - TURNS[0];
    let before = |name: &String| few.get(name).map_or(0, |ran| ran.instructions);
    let mut all: Vec<(bool, u64, &str)> = many
        .iter()
        .map(|(name, ran)| {
            let each_turn = ran.instructions >= before(name) + more;
            (!each_turn, ran.at, name.as_str())
        })
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(_, _, name)| name).collect()
}

/// Reads callgrind's format: names are written once and numbered from then on,
/// addresses are relative to the last one, and a line behind `calls=` counts
/// what the called function did.
fn functions(profile: &str, program: &Path) -> BTreeMap<String, Ran> {
    let (mut objects, mut names) = (HashMap::new(), HashMap::new());
    let (mut ours, mut name, mut at, mut called) = (false, "", 0, false);
    let mut found: BTreeMap<String, Ran> = BTreeMap::new();
    for line in profile.lines() {
        if let Some(rest) = line.strip_prefix("ob=") {
            ours = Path::new(numbered(&mut objects, rest)) == program;
        } else if let Some(rest) = line.strip_prefix("cob=") {
            numbered(&mut objects, rest);
        } else if let Some(rest) = line.strip_prefix("fn=") {
            name = numbered(&mut names, rest);
        } else if let Some(rest) = line.strip_prefix("cfn=") {
            numbered(&mut names, rest);
        } else if line.starts_with("calls=") {
            called = true;
        } else if let Some((address, count)) = cost(line) {
            at = moved(at, address);
            // What has no name is called by its address, or "(below main)".
            if std::mem::take(&mut called) || !ours || name.starts_with(['0', '(']) {
                continue;
            }
            // The same function further down a recursion.
            let plain = name.rsplit_once('\'').map_or(name, |(plain, _)| plain);
            let ran = found.entry(plain.to_owned()).or_insert(Ran {
                at,
                instructions: 0,
            });
            ran.at = ran.at.min(at);
            ran.instructions += count;
        }
    }
    found
}

/// `(7) name` where the number is new, `(7)` later.
fn numbered<'a>(known: &mut HashMap<&'a str, &'a str>, text: &'a str) -> &'a str {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        known.insert(number, name);
    }
    known.get(number).copied().unwrap_or_default()
}

/// `ADDRESS LINE COUNT`.
fn cost(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split(' ');
    let (address, _, count) = (words.next()?, words.next()?, words.next()?);
    let is_address = address == "*" || address.starts_with(['0', '+', '-']);
    (is_address && words.next().is_none()).then_some((address, count.parse().ok()?))
}

fn moved(from: u64, address: &str) -> u64 {
    let number = |text: &str| text.parse().unwrap_or(0);
    match address.split_at(1) {
        ("+", by) => from.wrapping_add(number(by)),
        ("-", by) => from.wrapping_sub(number(by)),
        ("*", _) => from,
        _ => u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap_or(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
events: Ir
ob=(1) /usr/lib/libc.so.6
fn=(1) malloc
0x10 3 5
ob=(2) /bin/crabtalk
fn=(2) _ZNstart
0x2000 3 6
+4 * 2
cob=(1)
cfn=(1)
calls=1 0x10
* * 700
-16 3 1
fn=(3) _ZNturn'2
0x1000 9 7
fn=(3)
* 9 1
fn=(4) _ZNturn
* 9 10
fn=(2)
0x2100 1 1

totals: 23
";

    #[test]
    fn a_profile_is_read() {
        let found = functions(PROFILE, Path::new("/bin/crabtalk"));
        let ran = |at, instructions| Ran { at, instructions };
        let start = ("_ZNstart".to_owned(), ran(0x1ff4, 10));
        let turn = ("_ZNturn".to_owned(), ran(0x1000, 18));
        assert_eq!(found, BTreeMap::from([start, turn]));
    }

    #[test]
    fn what_each_turn_runs_comes_first() {
        let all = |list: &[(&str, u64, u64)]| -> BTreeMap<String, Ran> {
            let entry = |&(name, at, instructions): &(&str, u64, u64)| {
                (name.to_owned(), Ran { at, instructions })
            };
            list.iter().map(entry).collect()
        };
        let few = all(&[("start", 1, 900), ("turn", 3, 20)]);
        let many = all(&[
            ("start", 1, 901),
            ("turn", 3, 60),
            ("now and then", 2, 30),
            ("other", 0, 400),
        ]);
        let expected = ["other", "turn", "start", "now and then"];
        assert_eq!(ordered(&few, &many), expected);
    }
}
