use super::*;
use crabtalk_config::Config;
use crabtalk_domain::{AgentName, ConversationKey, RunOutcome};
use crabtalk_store::Records;
use crabtalk_testkit::ManualClock;
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
        Arc::new(Records::in_state(folder)),
        Arc::clone(settings),
        Arc::clone(clock) as _,
        || TimeZone::fixed(jiff::tz::offset(1)),
        |model, usage| (model == "dear").then_some(usage.completion_tokens as f64),
    )
}

impl Rig {
    /// As after a restart.
    async fn again(self) -> Self {
        self.ledger.finish().await;
        self.clock.advance(SignedDuration::from_micros(1));
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

    async fn check(&self, agent: &AgentConfig) -> Result<(), Error> {
        let reserved = self.reserve(agent).await?;
        self.ledger.release(agent, reserved);
        Ok(())
    }

    /// A call of ten tokens that begins.
    async fn reserve(&self, agent: &AgentConfig) -> Result<Reservation, Error> {
        let estimate = Usage {
            prompt_tokens: 10,
            ..Usage::default()
        };
        self.ledger.reserve(agent, estimate).await
    }

    async fn report(&self, days: u32) -> Report {
        self.ledger.finish().await;
        self.ledger.report(days).await
    }

    /// A run that ended after so many calls of as many tokens.
    async fn end(&self, agent: &str, sender: &str, run: u64, calls: u64) {
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
            total: Some(CallTotal { calls, usage, cost }),
            carried_on_as: None,
        };
        self.ledger.on_run_end(&ended).await;
    }

    /// The last runs, newest first.
    async fn runs(&self, days: u32) -> Vec<String> {
        let runs = self.report(days).await.costs.runs.into_iter();
        runs.map(|run| {
            let at = run.at.split_once('T').unwrap().1;
            let tokens = run.total.usage.total_tokens();
            format!(
                "{at} {}+{} {} {:?}: {} {tokens} {}",
                run.agent,
                run.sender,
                run.run,
                run.of,
                run.total.calls,
                run.total.money()
            )
        })
        .collect()
    }

    /// Every sum, as `tokens money`.
    async fn told(&self, days: u32) -> Vec<String> {
        let report = self.report(days).await.costs;
        let show = |of: String, sum: &CallTotal| {
            format!("{of}: {} {}", sum.usage.total_tokens(), sum.money())
        };
        let days = report.days.iter();
        let days = days.map(|(day, sum)| show(day.to_string(), sum));
        let agents = report.agents.iter();
        let agents = agents.map(|(agent, sum)| show(agent.clone(), sum));
        let models = report.models.iter();
        let models = models.map(|((_, model), sum)| show(model.clone(), sum));
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

#[tokio::test]
async fn calls_add_up_and_survive_a_restart() {
    let rig = rig("");
    rig.spend("crab", "user", 1, "dear", 9);
    rig.spend("crab", "user", 1, "dear", 19);
    rig.spend("crab", "tg:1", 1, "free", 29);
    rig.spend("ada", "user", 7, "free", 39);
    let told = rig.told(0).await;
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
    assert_eq!(rig.again().await.told(0).await, told);
}

#[tokio::test]
async fn ended_runs_are_listed_over_days_and_restarts() {
    let rig = rig("");
    rig.spend("crab", "user", 1, "dear", 9);
    rig.end("crab", "user", 1, 2).await;
    // One whose first call failed.
    rig.end("ada", "failed", 1, 0).await;
    rig.clock.advance(SignedDuration::from_hours(1));
    rig.end("crab", "user", 2, 4).await;
    let all = [
        "23:29:00.000Z crab+user 2 Run(499): 4 4 0.5",
        "22:29:00.000Z ada+failed 1 Run(499): 0 0 0.5",
        "22:29:00.000Z crab+user 1 Run(499): 2 2 0.5",
    ];
    assert_eq!(
        rig.runs(1).await,
        all[..1],
        "a day begins at local midnight"
    );
    let rig = rig.again().await;
    assert_eq!(rig.runs(2).await, all);
    let told = rig.told(2).await;
    assert_eq!(
        told[..3],
        ["2026-11-22: 0 0", "2026-11-21: 10 1", "crab: 10 1"],
        "nothing counts twice"
    );
}

#[tokio::test]
async fn agent_budget_closes_until_local_midnight() {
    let rig = rig("");
    let crab = agent("crab", Some(20));
    assert_eq!(rig.check(&crab).await, Ok(()));
    rig.spend("crab", "user", 1, "free", 18);
    assert_eq!(rig.check(&crab).await, Ok(()));
    rig.spend("crab", "user", 2, "free", 4);
    let error = rig.check(&crab).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert_eq!(
        error.message,
        "the agent crab has used or reserved 24 tokens today, and its budget (budget.tokens_per_day) is 20; \
         it opens again at 2026-11-22 00:00 (in 31 min)"
    );
    assert_eq!(rig.check(&agent("ada", Some(20))).await, Ok(()));
    let rig = rig.again().await;
    assert!(rig.check(&crab).await.is_err(), "a restart opens nothing");
    rig.clock.advance(SignedDuration::from_mins(30));
    assert!(rig.check(&crab).await.is_err());
    rig.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(rig.check(&crab).await, Ok(()));
    rig.spend("crab", "user", 3, "free", 4);
    let told = rig.told(2).await;
    assert_eq!(
        told[..3],
        ["2026-11-22: 5 0", "2026-11-21: 24 0", "crab: 29 0"]
    );
}

#[tokio::test]
async fn node_budget_counts_all_agents_and_follows_a_reload() {
    let rig = rig("money_per_day = 2.0");
    let crab = agent("crab", None);
    rig.spend("crab", "user", 1, "dear", 9);
    assert_eq!(rig.check(&crab).await, Ok(()));
    rig.spend("ada", "user", 1, "dear", 9);
    let message = rig.check(&crab).await.unwrap_err().message;
    assert!(
        message.starts_with(
            "all agents together have used or reserved 2.0000 in money today, and the node's budget \
             (limits.money_per_day) is 2; it opens again at"
        ),
        "{message}"
    );
    rig.settings.replace(config("money_per_day = 3.0"));
    assert_eq!(rig.check(&crab).await, Ok(()));
    rig.settings.replace(config("tokens_per_day = 0"));
    assert!(rig.check(&crab).await.is_err());
}

#[tokio::test]
async fn damaged_records_close_budgets_and_nothing_else() {
    let rig = rig("");
    fs::write(rig.folder.path().join("records.db"), vec![b'x'; 8192]).unwrap();
    rig.spend("crab", "user", 1, "dear", 9);
    rig.end("crab", "user", 1, 1).await;
    assert_eq!(rig.check(&agent("crab", None)).await, Ok(()));
    assert_eq!(rig.told(0).await, ["2026-11-21: 0 0"]);
    let refused = rig.check(&agent("crab", Some(20))).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Budget);
    assert!(
        refused.message.contains("is damaged"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn clock_that_is_wrong_once_opens_no_budget() {
    let rig = rig("");
    let crab = agent("crab", Some(20));
    rig.spend("crab", "user", 1, "dear", 19);
    assert!(rig.check(&crab).await.is_err());
    rig.clock.advance(SignedDuration::from_hours(24 * 800));
    let rig = rig.again().await;
    rig.spend("crab", "user", 2, "dear", 9);
    rig.clock.advance(-SignedDuration::from_hours(24 * 800));
    assert!(rig.check(&crab).await.is_err(), "the day is known still");
    let rig = rig.again().await;
    assert!(rig.check(&crab).await.is_err(), "and on disk");
    assert_eq!(rig.told(0).await[0], "2026-11-21: 20 1");
}

#[tokio::test]
async fn calls_under_way_count_against_the_budget() {
    let rig = rig("");
    let crab = agent("crab", Some(25));
    let first = rig.reserve(&crab).await.unwrap();
    let second = rig.reserve(&crab).await.unwrap();
    let refused = rig.reserve(&crab).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Budget);
    rig.ledger.release(&crab, second);
    assert_eq!(rig.check(&crab).await, Ok(()));
    rig.ledger.release(&crab, first);
    assert_eq!(rig.told(0).await[0], "2026-11-21: 0 0");
}

#[tokio::test]
async fn unsettled_reservations_of_a_former_life_count_in_full() {
    let rig = rig("");
    let crab = agent("crab", Some(25));
    let settled = rig.reserve(&crab).await.unwrap();
    rig.ledger.release(&crab, settled);
    for _ in 0..2 {
        rig.reserve(&crab).await.unwrap();
    }
    let rig = rig.again().await;
    assert_eq!(rig.told(0).await[0], "2026-11-21: 20 0");
    rig.reserve(&crab).await.unwrap();
    assert!(rig.reserve(&crab).await.is_err());
}
