//! Requests about cron entries (CRON-1).

use super::Session;
use crate::cron::{Listed, maker};
use crate::error::Error;
use crabtalk_domain::{AgentConfig, stamp};
use crabtalk_files::local_zone;
use crabtalk_gate::ToolRights as Rights;
use crabtalk_proto::*;
use crabtalk_triggers::cron::{
    Asks, Draft, Expression, Finding, Missed, Notify, Quiet, Row, When, in_words, parse_at, zone,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::HashSet;
use std::path::Path;

/// Default number of rows in an answer.
const ROWS: usize = 50;

/// Maximum number of rows of an answer: a few hundred kilobytes.
const MAX_ROWS: usize = 1000;

/// Default number of times in a test.
const TIMES: usize = 10;

/// Maximum number of times of a test.
const MAX_TIMES: usize = 100;

/// Maximum number of attempts to find times outside quiet hours: each minute of a day.
const MAX_TRIES: usize = 1440 + MAX_TIMES;

/// Tools that affect only memory and the conversation.
const HARMLESS: &[&str] = &[
    "ask_user",
    "forget",
    "memory",
    "recall",
    "remember",
    "schedule",
    "set_title",
    "skill",
    "todo",
];

impl Session {
    pub(super) async fn make_cron(&self, request: CreateCronMsg) -> Result<CronInfo, Error> {
        let or = |text: Option<String>| text.unwrap_or_default();
        let agent = match request.agent.as_str() {
            // The entry keeps this agent if the default changes later.
            "" => self.node.config().default_agent.clone(),
            agent => agent.to_owned(),
        };
        let catalog = self.node.runtime.catalog();
        let settings = catalog.agent(&agent)?.clone();
        drop(catalog);
        let cwd = or(request.cwd);
        if !cwd.is_empty() {
            let expanded = self.node.home.expand_tilde(&cwd);
            self.check_cwd(Some(&expanded.to_string_lossy())).await?;
        }
        let by = or(request.by);
        let draft = Draft {
            schedule: request.schedule,
            at: or(request.at),
            zone: or(request.zone),
            agent,
            sender: match (request.sender, self.grant()) {
                // A token's default sender is its name (CONV-8).
                (sender, Some(grant)) if sender.is_empty() => grant.name().to_owned(),
                (sender, _) => sender,
            },
            skill: request.skill,
            args: or(request.args),
            content: or(request.content),
            cwd,
            quiet_start: or(request.quiet_start),
            quiet_end: or(request.quiet_end),
            once: request.once,
            missed: or(request.missed),
            asks: or(request.asks),
            notify: or(request.notify),
            paused: request.paused.unwrap_or_default(),
            by: maker(
                Some(&self.principal(&by)),
                if by.is_empty() {
                    self.default_sender()
                } else {
                    &by
                },
            ),
            ..Draft::default()
        };
        let (skill, cwd) = (draft.skill.clone(), draft.cwd.clone());
        let listed = self.node.cron.add(draft).await?;
        let mut info = self.told(info(&listed, Timestamp::now()));
        info.would_fail = self.why_no_skill(&settings, &skill, &cwd).await;
        if info.asks != "inbox" {
            info.unattended = self.why_idle(&info.agent);
        }
        Ok(info)
    }

    /// The reason why a skill cannot be used now; empty if it can. Only a warning, since an
    /// entry looks up its skill when it fires.
    async fn why_no_skill(&self, agent: &AgentConfig, skill: &str, cwd: &str) -> String {
        if skill.is_empty() {
            return String::new();
        }
        let home = &self.node.home;
        let cwd = match cwd {
            "" => agent.cwd.clone(),
            cwd => Some(home.expand_tilde(cwd)),
        };
        let cwd = cwd.or_else(|| home.user_home().map(Path::to_owned));
        let skills = &self.node.skills;
        skills.why_none(agent, skill, cwd).await.unwrap_or_default()
    }

    /// Removes the maker from an entry for a client with a limited reach.
    fn told(&self, mut info: CronInfo) -> CronInfo {
        if let Some(grant) = self.grant()
            && !grant.everything()
            && info.by != format!("token/{}", grant.name())
        {
            (info.by, info.by_agent) = Default::default();
        }
        info
    }

    /// Treats an entry of a conversation beyond reach as absent.
    async fn check_cron(&self, id: u64) -> Result<(), Error> {
        if self.reaches_everything() {
            return Ok(());
        }
        let (listed, ..) = self.node.cron.list().await?;
        let found = listed.iter().find(|listed| listed.entry.draft.id == id);
        match found.is_some_and(|listed| self.reaches_key(&listed.entry.key)) {
            true => Ok(()),
            false => Err(Error::NotFound(format!("cron entry {id} does not exist"))),
        }
    }

    pub(super) async fn crons(&self, _: ListCronsMsg) -> Result<CronList, Error> {
        let (listed, findings, problem) = self.node.cron.list().await?;
        let now = Timestamp::now();
        let reached = listed
            .iter()
            .filter(|listed| self.reaches_key(&listed.entry.key));
        let mut crons: Vec<CronInfo> = reached.map(|listed| self.told(info(listed, now))).collect();
        let mut problems = Vec::new();
        if self.reaches_everything() {
            crons.extend(findings.into_iter().map(broken));
            problems.extend(problem);
        }
        crons.sort_by_key(|cron| cron.id);
        Ok(CronList { crons, problems })
    }

    pub(super) async fn change_cron(&self, request: SetCronMsg) -> Result<CronInfo, Error> {
        self.check_cron(request.id).await?;
        let SetCronMsg { id, paused, .. } = request;
        let mut listed = None;
        if is_edit(&request) {
            if let Some(cwd) = request.cwd.as_ref().filter(|cwd| !cwd.is_empty()) {
                let expanded = self.node.home.expand_tilde(cwd);
                self.check_cwd(Some(&expanded.to_string_lossy())).await?;
            }
            // The editor becomes the maker, whose memory the runs see.
            let by = maker(Some(&self.principal("")), self.default_sender());
            let edit = move |draft: &mut Draft| {
                (draft.by, draft.by_agent, draft.chain) = (by, false, 0);
                edit(draft, request);
            };
            listed = Some(self.node.cron.edit(id, edit).await?);
        }
        if let Some(paused) = paused {
            listed = Some(self.node.cron.pause(id, paused).await?);
        }
        let listed = listed.ok_or_else(|| Error::Invalid("give a field to change".into()))?;
        let mut info = self.told(info(&listed, Timestamp::now()));
        if info.asks != "inbox" {
            info.unattended = self.why_idle(&info.agent);
        }
        Ok(info)
    }

    /// Warns if the agent may not act outside its conversation without approval.
    fn why_idle(&self, agent: &str) -> String {
        let Ok((_, rights)) = self.node.runtime.rights(agent) else {
            return String::new();
        };
        let acts = |tool: &Rights| {
            !HARMLESS.contains(&&*tool.tool) && tool.unattended.starts_with("allow")
        };
        let has_rules = |tool: &Rights| {
            let rules = tool.rules.iter();
            rules.into_iter().any(|rule| rule.ends_with(": allow"))
        };
        match rights.iter().any(|tool| acts(tool) || has_rules(tool)) {
            true => String::new(),
            false => {
                format!("{agent} has no permission to use files or run commands without approval")
            }
        }
    }

    pub(super) async fn fire_cron(&self, RunCronMsg { id }: RunCronMsg) -> Result<CronRun, Error> {
        self.check_cron(id).await?;
        let fire = self.node.cron.run_now(id).await?;
        Ok(CronRun {
            id,
            due: fire.due.map(stamp).unwrap_or_default(),
            fired: stamp(fire.at),
            outcome: "running".into(),
            agent: fire.entry.key.agent.to_string(),
            sender: fire.entry.key.sender.to_string(),
            count: 1,
            said: fire.entry.words(),
            ..CronRun::default()
        })
    }

    pub(super) async fn drop_cron(&self, request: DeleteCronMsg) -> Result<(), Error> {
        self.check_cron(request.id).await?;
        self.node.cron.remove(request.id).await
    }

    pub(super) async fn cron_times(&self, request: TestCronMsg) -> Result<CronTimes, Error> {
        cron_times(&request)
    }

    pub(super) async fn cron_runs(&self, request: ListCronRunsMsg) -> Result<CronRunList, Error> {
        let limit = super::as_many(request.limit, ROWS, MAX_ROWS);
        if self.reaches_everything() {
            let rows = self.node.cron.rows(request.id, limit).await?;
            return Ok(CronRunList {
                runs: rows.into_iter().map(row).collect(),
            });
        }
        // A skipped row contains only the number of its entry.
        let (listed, ..) = self.node.cron.list().await?;
        let entries = listed
            .iter()
            .filter(|listed| self.reaches_key(&listed.entry.key));
        let reached: HashSet<u64> = entries.map(|listed| listed.entry.draft.id).collect();
        let rows = self.node.cron.rows(request.id, MAX_ROWS).await?;
        let rows = rows.into_iter().filter(|row| match row {
            Row::Run(fired, _) => self.reaches(&fired.agent, &fired.sender),
            Row::Skipped(skipped) => reached.contains(&skipped.id),
        });
        Ok(CronRunList {
            runs: rows.take(limit).map(row).collect(),
        })
    }
}

/// Whether a request changes more than the pause.
fn is_edit(request: &SetCronMsg) -> bool {
    let pause = SetCronMsg {
        id: request.id,
        paused: request.paused,
        ..SetCronMsg::default()
    };
    *request != pause
}

fn edit(draft: &mut Draft, request: SetCronMsg) {
    // Either replaces the other.
    if request.schedule.is_some() {
        draft.at.clear();
    }
    if request.at.is_some() {
        draft.schedule.clear();
    }
    let texts = [
        (&mut draft.schedule, request.schedule),
        (&mut draft.at, request.at),
        (&mut draft.skill, request.skill),
        (&mut draft.args, request.args),
        (&mut draft.content, request.content),
        (&mut draft.cwd, request.cwd),
        (&mut draft.zone, request.zone),
        (&mut draft.quiet_start, request.quiet_start),
        (&mut draft.quiet_end, request.quiet_end),
        (&mut draft.missed, request.missed),
        (&mut draft.asks, request.asks),
        (&mut draft.notify, request.notify),
    ];
    for (text, new) in texts {
        if let Some(new) = new {
            *text = new;
        }
    }
    draft.once = request.once.unwrap_or(draft.once);
}

/// The next due times of a cron expression or a single time.
fn cron_times(request: &TestCronMsg) -> Result<CronTimes, Error> {
    let bad = |error: String| Error::Invalid(error);
    let zone = match request.zone.trim() {
        "" => local_zone(),
        name => zone(name).map_err(|e| bad(e.to_string()))?,
    };
    let given = |text: &'_ str| (!text.trim().is_empty()).then(|| text.to_owned());
    let quiet = Quiet::parse(
        given(&request.quiet_start).as_deref(),
        given(&request.quiet_end).as_deref(),
    )
    .map_err(bad)?;
    let count = super::as_many(request.count, TIMES, MAX_TIMES);
    let now = Timestamp::now();
    let text = request.schedule.trim();
    // An invalid text gets the error of a cron expression.
    let when = match Expression::parse(text) {
        Ok(expression) => When::Schedule(expression),
        Err(error) => match parse_at(text, now, &zone) {
            Ok(at) => When::At(at),
            Err(_) => return Err(bad(error.to_string())),
        },
    };
    let mut times = CronTimes {
        zone: name(&zone),
        ..CronTimes::default()
    };
    let mut at = now;
    for _ in 0..MAX_TRIES {
        let Some(next) = when.next_after(at, &zone) else {
            break;
        };
        at = next;
        if quiet.is_some_and(|quiet| quiet.holds(at, &zone)) {
            continue;
        }
        times.times.push(local(at, &zone));
        times.words.push(in_words(at, now, &zone));
        if times.times.len() == count {
            break;
        }
    }
    Ok(times)
}

fn name(zone: &TimeZone) -> String {
    zone.iana_name().unwrap_or("local").to_owned()
}

/// Formats an instant as RFC 3339 with the zone's offset.
fn local(at: Timestamp, zone: &TimeZone) -> String {
    let local = at.to_zoned(zone.clone());
    local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn info(listed: &Listed, now: Timestamp) -> CronInfo {
    let (entry, account) = (&listed.entry, &listed.account);
    let ended = account.ended.as_ref();
    let next_in_words = match listed.next {
        _ if account.paused => "paused".to_owned(),
        Some(next) if next <= now => "waits for its turn".to_owned(),
        Some(next) => in_words(next, now, &entry.zone),
        None if account.used => "used up".to_owned(),
        None => "never: its time has passed".to_owned(),
    };
    CronInfo {
        agent: entry.key.agent.to_string(),
        sender: entry.key.sender.to_string(),
        missed: match entry.missed {
            Missed::Skip => "skip".into(),
            Missed::Once => "once".into(),
        },
        asks: match entry.asks {
            Asks::Refuse => "refuse".into(),
            Asks::Inbox => "inbox".into(),
        },
        notify: match entry.notify {
            Notify::Failures => "failures".into(),
            Notify::Results => "results".into(),
            Notify::Nothing => "nothing".into(),
        },
        once: entry.is_once(),
        paused: account.paused,
        next_fire: listed
            .next
            .map(|next| local(next, &entry.zone))
            .unwrap_or_default(),
        next_in_words,
        last_outcome: match ended {
            _ if listed.running => "running".into(),
            Some(ended) => ended.outcome.as_str().into(),
            None => String::new(),
        },
        last_error: ended.map(|ended| ended.error.clone()).unwrap_or_default(),
        last_fired: account
            .last
            .as_ref()
            .map(|last| stamp(last.at))
            .unwrap_or_default(),
        fired: account.fired,
        skipped: account.skipped,
        failures: account.failures,
        running: listed.running,
        tokens: account.usage.tokens,
        money: account.usage.money,
        ..written(&entry.draft)
    }
}

/// The fields of a draft, which may be invalid.
fn written(draft: &Draft) -> CronInfo {
    let draft = draft.clone();
    CronInfo {
        id: draft.id,
        schedule: draft.schedule,
        at: draft.at,
        zone: draft.zone,
        agent: draft.agent,
        sender: draft.sender,
        skill: draft.skill,
        args: draft.args,
        content: draft.content,
        cwd: draft.cwd,
        quiet_start: draft.quiet_start,
        quiet_end: draft.quiet_end,
        once: draft.once,
        missed: draft.missed,
        asks: draft.asks,
        notify: draft.notify,
        paused: draft.paused,
        by: draft.by,
        by_agent: draft.by_agent,
        ..CronInfo::default()
    }
}

/// Represents an invalid entry of the file.
fn broken(finding: Finding) -> CronInfo {
    CronInfo {
        problem: format!("crons.toml:{}: {}", finding.line, finding.why),
        next_in_words: "never: it is not valid".into(),
        ..written(&finding.draft)
    }
}

fn row(row: Row) -> CronRun {
    match row {
        Row::Run(fired, ended) => {
            let mut run = CronRun {
                id: fired.id,
                due: fired.due.map(stamp).unwrap_or_default(),
                fired: stamp(fired.at),
                outcome: "running".into(),
                agent: fired.agent,
                sender: fired.sender,
                late: fired.late,
                count: 1,
                said: fired.words,
                ..CronRun::default()
            };
            if let Some(ended) = ended {
                run.ended = stamp(ended.at);
                run.outcome = ended.outcome.as_str().into();
                run.reason = ended.error;
                run.code = ended.code;
                run.duration_ms = ended.ms;
                run.tokens = ended.usage.tokens;
                run.money = ended.usage.money;
                run.run = ended.run.unwrap_or_default();
                run.refused = ended.refused;
            }
            run
        }
        Row::Skipped(skipped) => CronRun {
            id: skipped.id,
            due: stamp(skipped.due),
            last_due: if skipped.last > skipped.due {
                stamp(skipped.last)
            } else {
                String::new()
            },
            ended: stamp(skipped.at),
            outcome: "skipped".into(),
            reason: skipped.why.as_str().into(),
            count: skipped.count,
            ..CronRun::default()
        },
    }
}
