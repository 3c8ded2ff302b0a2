use super::*;
use crabtalk_config::Config;
use crabtalk_domain::{AgentName, ConversationKey, RunOutcome, RunTotal};
use crabtalk_testkit::ManualClock;
use futures_util::FutureExt;
use jiff::ToSpan;
use jiff::civil::Date;
use std::fs;
use std::path::Path;

/// A ledger of a price of 1 a token written, for the model `dear` alone.
struct Rig {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    settings: Arc<Settings>,
    ledger: DayLedger,
}

fn config(limits: &str) -> Config {
    let text = format!("[limits]\n{limits}");
    let (config, _) = Config::parse(&text, Path::new("config.toml"), &|_| None).unwrap();
    config
}

fn rig(limits: &str) -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at("2026-11-21T22:29:00Z"));
    let settings = Settings::new(config(limits));
    let ledger = open(folder.path(), &clock, &settings);
    Rig {
        folder,
        clock,
        settings,
        ledger,
    }
}

fn open(folder: &Path, clock: &Arc<ManualClock>, settings: &Arc<Settings>) -> DayLedger {
    DayLedger::new(
        folder.join("ledger"),
        Arc::clone(settings),
        Arc::clone(clock) as _,
        || TimeZone::fixed(jiff::tz::offset(1)),
        |model, usage| (model == "dear").then_some(usage.completion_tokens as f64),
    )
}

impl Rig {
    /// As after a restart.
    fn again(self) -> Self {
        let ledger = open(self.folder.path(), &self.clock, &self.settings);
        Self { ledger, ..self }
    }

    fn spend(&self, agent: &str, sender: &str, run: u64, model: &str, tokens: u64) {
        let spent = Spent {
            key: &ConversationKey::new(agent, sender).unwrap(),
            run,
            agent: &self::agent(agent, None),
            provider: "p",
            model,
            usage: &Usage {
                prompt_tokens: tokens,
                completion_tokens: 1,
                ..Usage::default()
            },
        };
        self.ledger.record(Reservation::default(), spent);
    }

    /// Without a runtime everything is done at once.
    fn check(&self, agent: &AgentConfig) -> Result<(), Error> {
        let reserved = self.reserve(agent)?;
        self.ledger.release(agent, reserved);
        Ok(())
    }

    /// A call of ten tokens that begins.
    fn reserve(&self, agent: &AgentConfig) -> Result<Reservation, Error> {
        let estimate = Usage {
            prompt_tokens: 10,
            ..Usage::default()
        };
        let reserved = self.ledger.reserve(agent, estimate);
        reserved.now_or_never().unwrap()
    }

    fn report(&self, days: u32) -> Report {
        self.ledger.know_today().now_or_never().unwrap();
        self.ledger.report(days)
    }

    /// A run that ended after so many calls of as many tokens.
    fn end(&self, agent: &str, sender: &str, run: u64, calls: u64) {
        let usage = Usage {
            prompt_tokens: calls,
            ..Usage::default()
        };
        let cost = Cost::of_call(&usage, Some(0.5));
        let ended = RunEnded {
            key: Arc::new(ConversationKey::new(agent, sender).unwrap()),
            speaker: agent.into(),
            origin: None,
            request_id: String::new(),
            outcome: RunOutcome {
                run,
                code: 499,
                ..RunOutcome::default()
            },
            answer: String::new(),
            total: Some(RunTotal { calls, usage, cost }),
            carried_on_as: None,
        };
        let heard = self.ledger.on_run_end(&ended).now_or_never();
        heard.expect("it waits for nothing");
    }

    /// The last runs, newest first.
    fn runs(&self, days: u32) -> Vec<String> {
        let runs = self.report(days).runs.into_iter();
        runs.map(|run| {
            let at = run.at.split_once('T').unwrap().1;
            format!(
                "{at} {}+{} {} {}: {} {} {}",
                run.cell.agent,
                run.cell.sender,
                run.run,
                run.code,
                run.sum.calls,
                run.sum.tokens(),
                run.sum.money
            )
        })
        .collect()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("ledger/2026-11-21.jsonl")
    }

    /// Every sum, as `tokens money`.
    fn told(&self, days: u32) -> Vec<String> {
        let report = self.report(days);
        let show = |of: String, sum: &Sum| format!("{of}: {} {}", sum.tokens(), sum.money);
        let days = report
            .days
            .iter()
            .map(|(day, sum)| show(day.to_string(), sum));
        let agents = report
            .agents
            .iter()
            .map(|(agent, sum)| show(agent.clone(), sum));
        let models = report
            .models
            .iter()
            .map(|((_, model), sum)| show(model.clone(), sum));
        let conversations = report.conversations.iter();
        let conversations = conversations.map(|((a, s), sum)| show(format!("{a}+{s}"), sum));
        let rows = days.chain(agents).chain(models);
        rows.chain(conversations).collect()
    }
}

fn agent(name: &str, tokens_per_day: Option<u64>) -> AgentConfig {
    let mut agent = AgentConfig::new(AgentName::new(name).unwrap(), "");
    agent.budget.tokens_per_day = tokens_per_day;
    agent
}

#[test]
fn calls_add_up_by_everything_and_survive_a_restart() {
    let rig = rig("");
    rig.spend("crab", "user", 1, "dear", 9);
    rig.spend("crab", "user", 1, "dear", 19);
    rig.spend("crab", "tg:1", 1, "free", 29);
    rig.spend("ada", "user", 7, "free", 39);
    let told = rig.told(0);
    assert_eq!(
        told,
        [
            "2026-11-21: 100 2",
            "crab: 60 2",
            "ada: 40 0",
            "dear: 30 2",
            "free: 70 0",
            "crab+user: 30 2",
            "ada+user: 40 0",
            "crab+tg:1: 30 0",
        ]
    );
    assert_eq!(rig.again().told(0), told);
}

#[test]
fn runs_are_told_as_they_ended_over_days_and_restarts() {
    let rig = rig("");
    rig.spend("crab", "user", 1, "dear", 9);
    rig.end("crab", "user", 1, 2);
    rig.end("ada", "tg:1", 7, 3);
    // One whose first call failed.
    rig.end("ada", "failed", 1, 0);
    rig.clock.advance(SignedDuration::from_hours(1));
    rig.end("crab", "user", 2, 4);
    let all = [
        "23:29:00.000Z crab+user 2 499: 4 4 0.5",
        "22:29:00.000Z ada+failed 1 499: 0 0 0.5",
        "22:29:00.000Z ada+tg:1 7 499: 3 3 0.5",
        "22:29:00.000Z crab+user 1 499: 2 2 0.5",
    ];
    assert_eq!(rig.runs(1), all[..1], "a day begins at local midnight");
    assert_eq!(rig.runs(2), all);
    assert_eq!(
        rig.told(2)[1..3],
        ["2026-11-21: 10 1", "crab: 10 1"],
        "nothing counts twice"
    );
    let rig = rig.again();
    assert_eq!(rig.runs(2), all);
    assert_eq!(rig.told(2)[1..3], ["2026-11-21: 10 1", "crab: 10 1"]);
}

#[test]
fn runs_that_failed_at_once_crowd_out_none_that_cost_something() {
    let rig = rig("");
    for run in 1..=99 {
        rig.end("crab", "user", run, 1);
    }
    for run in 1..=300 {
        rig.end("crab", "failing", run, 0);
    }
    let told = |rig: &Rig| {
        let runs = rig.runs(1);
        let failed = runs.iter().filter(|run| run.contains("failing"));
        assert_eq!(failed.collect::<Vec<_>>(), [&runs[0]]);
        runs.len()
    };
    assert_eq!(told(&rig), 100);
    assert_eq!(told(&rig.again()), 100);
}

#[test]
fn a_torn_line_costs_itself_alone() {
    let rig = rig("");
    rig.spend("crab", "user", 1, "dear", 9);
    rig.spend("crab", "user", 2, "dear", 9);
    let whole = fs::read(rig.file()).unwrap();
    let first = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    let mut rig = rig;
    for cut in first..whole.len() {
        fs::write(rig.file(), &whole[..cut]).unwrap();
        rig = rig.again();
        // What lacks but its line end is whole.
        let kept = if cut == whole.len() - 1 { 2 } else { 1 };
        assert_eq!(rig.told(0)[0], day(kept), "{cut}");
        rig.spend("crab", "user", 3, "dear", 9);
        rig = rig.again();
        assert_eq!(rig.told(0)[0], day(kept + 1), "{cut}");
    }
}

/// So many calls of ten tokens.
fn day(calls: u64) -> String {
    format!("2026-11-21: {} {calls}", calls * 10)
}

#[test]
fn an_agents_budget_closes_it_until_local_midnight() {
    let rig = rig("");
    let crab = agent("crab", Some(20));
    assert_eq!(rig.check(&crab), Ok(()));
    rig.spend("crab", "user", 1, "free", 18);
    assert_eq!(rig.check(&crab), Ok(()));
    rig.spend("crab", "user", 2, "free", 4);
    let error = rig.check(&crab).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert_eq!(
        error.message,
        "the agent crab has used or reserved 24 tokens today, and its budget (budget.tokens_per_day) is 20; \
         it opens again at 2026-11-22 00:00 (in 31 min)"
    );
    assert_eq!(rig.check(&agent("ada", Some(20))), Ok(()));
    let rig = rig.again();
    assert!(rig.check(&crab).is_err(), "a restart opens nothing");
    rig.clock.advance(SignedDuration::from_mins(30));
    assert!(rig.check(&crab).is_err());
    rig.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(rig.check(&crab), Ok(()));
    rig.spend("crab", "user", 3, "free", 4);
    assert_eq!(rig.told(0)[0], "2026-11-22: 5 0");
    assert_eq!(
        rig.told(2)[..3],
        ["2026-11-22: 5 0", "2026-11-21: 24 0", "crab: 29 0"]
    );
    assert_eq!(fs::read_to_string(rig.file()).unwrap().lines().count(), 1);
}

#[test]
fn the_nodes_budget_counts_all_agents_and_follows_a_reload() {
    let rig = rig("money_per_day = 2.0");
    let crab = agent("crab", None);
    rig.spend("crab", "user", 1, "dear", 9);
    assert_eq!(rig.check(&crab), Ok(()));
    rig.spend("ada", "user", 1, "dear", 9);
    let message = rig.check(&crab).unwrap_err().message;
    assert!(
        message.starts_with(
            "all agents together have used or reserved 2.0000 in money today, and the node's budget \
             (limits.money_per_day) is 2; it opens again at"
        ),
        "{message}"
    );
    rig.settings.replace(config("money_per_day = 3.0"));
    assert_eq!(rig.check(&crab), Ok(()));
    rig.settings.replace(config("tokens_per_day = 0"));
    assert!(rig.check(&crab).is_err());
}

#[test]
fn a_file_that_grew_is_added_up_and_says_the_same() {
    let rig = rig("");
    rig.spend("crab", "user", 1, "dear", 9);
    let line = fs::read_to_string(rig.file()).unwrap();
    let lines = 4 * 1024 * 1024 / line.len() + 1;
    rig.end("crab", "user", 1, 2);
    let end = fs::read_to_string(rig.file()).unwrap()[line.len()..].to_owned();
    fs::write(rig.file(), line.repeat(lines) + &end).unwrap();
    let rig = rig.again();
    let before = rig.told(0)[0].clone();
    assert_eq!(before, format!("2026-11-21: {} {lines}", lines * 10));
    rig.spend("crab", "user", 1, "dear", 9);
    assert_eq!(fs::read_to_string(rig.file()).unwrap().lines().count(), 2);
    rig.spend("crab", "user", 2, "dear", 9);
    rig.end("crab", "user", 2, 1);
    let rig = rig.again();
    assert_eq!(
        rig.runs(1),
        [
            "22:29:00.000Z crab+user 2 499: 1 1 0.5",
            "22:29:00.000Z crab+user 1 499: 2 2 0.5"
        ]
    );
    assert_eq!(
        rig.told(0)[0],
        format!("2026-11-21: {} {}", (lines + 2) * 10, lines + 2)
    );
}

#[test]
fn senders_without_end_are_counted_and_bounded() {
    let rig = rig("");
    for sender in 0..5000 {
        rig.spend("crab", &format!("tg:{sender}"), 1, "dear", 9);
        rig.end("crab", &format!("tg:{sender}"), 1, 1);
    }
    let today = rig.report(0);
    assert_eq!(today.today.calls, 5000);
    let today_sums = rig
        .ledger
        .desk
        .with(rig.ledger.now().date(), |day| day.sums());
    assert!(today_sums.cells.len() <= 4097);
    assert_eq!(today.conversations.len(), 100);
    assert_eq!(today.runs.len(), 100);
}

#[test]
fn a_folder_that_cannot_be_written_stops_nothing() {
    let rig = rig("");
    fs::write(rig.folder.path().join("ledger"), "in the way").unwrap();
    rig.spend("crab", "user", 1, "dear", 9);
    assert_eq!(rig.told(0)[0], "2026-11-21: 10 1");
}

#[test]
fn a_clock_that_is_wrong_for_once_deletes_nothing_and_opens_no_budget() {
    let rig = rig("");
    let crab = agent("crab", Some(20));
    rig.spend("crab", "user", 1, "dear", 19);
    assert!(rig.check(&crab).is_err());
    rig.clock.advance(SignedDuration::from_hours(24 * 800));
    let rig = rig.again();
    rig.spend("crab", "user", 2, "dear", 9);
    rig.clock.advance(-SignedDuration::from_hours(24 * 800));
    assert!(rig.check(&crab).is_err(), "the day is known still");
    let rig = rig.again();
    assert!(rig.check(&crab).is_err(), "and on disk");
    assert_eq!(rig.told(0)[0], "2026-11-21: 20 1");
}

#[test]
fn of_the_days_with_calls_a_number_is_kept() {
    let rig = rig("");
    let folder = rig.folder.path().join("ledger");
    fs::create_dir(&folder).unwrap();
    let first: Date = "2024-01-01".parse().unwrap();
    for days in 0..450_i64 {
        let day = first.checked_add(days.days()).unwrap();
        fs::write(folder.join(format!("{day}.jsonl")), "").unwrap();
    }
    fs::write(folder.join("notes.txt"), "").unwrap();
    rig.spend("crab", "user", 1, "dear", 9);
    let mut left: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left.len(), 402);
    assert_eq!(left[0], "2024-02-20.jsonl");
    assert_eq!(left[400..], ["2026-11-21.jsonl", "notes.txt"]);
}

#[test]
fn a_pipe_in_a_days_place_is_named_and_waited_for_by_nobody() {
    let rig = rig("");
    fs::create_dir(rig.folder.path().join("ledger")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, rig.file(), kind, mode, 0).unwrap();
    rig.spend("crab", "user", 1, "dear", 9);
    assert_eq!(rig.told(0)[0], "2026-11-21: 10 1", "it counts in memory");
    assert_eq!(rig.check(&agent("crab", None)), Ok(()));
    let refused = rig.check(&agent("crab", Some(20))).unwrap_err();
    assert!(
        refused.message.contains("2026-11-21.jsonl") && refused.message.contains("is a pipe"),
        "a budget of which nobody knows the rest is closed: {}",
        refused.message
    );
}

#[tokio::test(start_paused = true)]
#[expect(
    clippy::await_holding_lock,
    reason = "the lock is the disk that hangs, and the threads that wait for it are others"
)]
async fn a_disk_that_hangs_holds_up_nobody_who_counts() {
    let rig = rig("");
    let desk = Arc::clone(&rig.ledger.desk);
    // Whoever is at the files waits, as a dead mount lets them.
    let hanging = desk.book.lock().unwrap();
    for _ in 0..2 * day::MAX_UNWRITTEN {
        rig.spend("crab", "user", 1, "dear", 9);
    }
    assert_eq!(
        rig.ledger
            .reserve(&agent("crab", None), Usage::default())
            .await,
        Ok(Reservation::default())
    );
    let limited = agent("crab", Some(20));
    // Where a budget decides, the call is refused, and in time.
    let mut asked = rig.ledger.reserve(&limited, Usage::default());
    assert!((&mut asked).now_or_never().is_none());
    // Time does not pass by itself while a thread hangs.
    tokio::time::advance(std::time::Duration::from_secs(11)).await;
    let refused = asked.await.unwrap_err();
    assert!(
        refused.message.contains("does not answer"),
        "{}",
        refused.message
    );
    drop(hanging);
    rig.ledger.finish().await;
    assert!(
        rig.ledger
            .reserve(&limited, Usage::default())
            .await
            .is_err(),
        "it counts"
    );
    assert_eq!(rig.told(0)[0], format!("2026-11-21: {} {}", 81920, 8192));
    let lines = fs::read_to_string(rig.file()).unwrap().lines().count();
    assert_eq!(lines, day::MAX_UNWRITTEN, "and what found room is on disk");
}

#[test]
fn calls_under_way_count_against_the_budget() {
    let rig = rig("");
    let crab = agent("crab", Some(25));
    let first = rig.reserve(&crab).unwrap();
    let second = rig.reserve(&crab).unwrap();
    let refused = rig.reserve(&crab).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Budget);
    rig.ledger.release(&crab, second);
    assert_eq!(rig.check(&crab), Ok(()));
    rig.ledger.release(&crab, first);
    assert_eq!(rig.told(0)[0], "2026-11-21: 0 0");
}

#[test]
fn reservations_that_a_crash_cut_off_count_in_full() {
    let rig = rig("");
    let crab = agent("crab", Some(25));
    let settled = rig.reserve(&crab).unwrap();
    rig.ledger.release(&crab, settled);
    for _ in 0..2 {
        rig.reserve(&crab).unwrap();
    }
    let rig = rig.again();
    assert_eq!(rig.told(0)[0], "2026-11-21: 20 0");
    rig.reserve(&crab).unwrap();
    assert!(rig.reserve(&crab).is_err());
}
