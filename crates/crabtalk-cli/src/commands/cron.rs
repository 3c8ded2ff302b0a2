//! `cron`: manages agents that run on a schedule.

mod request;

use super::{Column, Context};
use crate::args::{Cron, CronEntry};
use crate::error::Error;
use crate::text::{local, money, summary};
use crate::{json, table};
use crabtalk_proto::{
    CronInfo, CronRun, DeleteCronMsg, ListCronRunsMsg, ListCronsMsg, RunCronMsg, SetCronMsg,
    TestCronMsg, visible,
};
use request::window;
use serde_json::json;

/// Maximum characters of a prompt in a list.
const MAX_SHOWN: usize = 40;

pub(super) async fn run(context: &mut Context, command: Cron) -> Result<(), Error> {
    match command {
        Cron::List => list(context).await,
        Cron::Add(add) => request::add(context, *add).await,
        Cron::Show(CronEntry { id }) => show(context, id).await,
        Cron::Edit(edit) => request::edit(context, *edit).await,
        Cron::Rm(CronEntry { id }) => {
            let request = DeleteCronMsg { id };
            context.call(request).await?;
            context.done(
                json!({"removed": id}),
                &format!("crabtalk: removed entry {id}"),
            )
        }
        Cron::Runs { id, limit } => runs_of(context, id, limit).await,
        Cron::Run(CronEntry { id }) => {
            let request = RunCronMsg { id };
            let run = context.call(request).await?;
            let said = format!(
                "crabtalk: entry {id} runs as {} for {}; see `crabtalk cron runs {id}`",
                run.agent, run.sender
            );
            context.done(json::of(&run), &said)
        }
        Cron::Pause(CronEntry { id }) => pause(context, id, true).await,
        Cron::Resume(CronEntry { id }) => pause(context, id, false).await,
        Cron::Test {
            schedule,
            zone,
            quiet,
            count,
        } => test(context, schedule, zone, quiet, count).await,
    }
}

async fn pause(context: &mut Context, id: u64, paused: bool) -> Result<(), Error> {
    let request = SetCronMsg {
        id,
        paused: Some(paused),
        ..SetCronMsg::default()
    };
    let info = context.call(request).await?;
    let said = match paused {
        true => format!("crabtalk: entry {id} paused"),
        false => format!(
            "crabtalk: entry {id} resumed; next run {}",
            info.next_in_words
        ),
    };
    context.done(json::of(&info), &said)
}

/// Number of runs in `show`.
const SHOWN_RUNS: u32 = 5;

async fn show(context: &mut Context, id: u64) -> Result<(), Error> {
    let listed = context.call(ListCronsMsg {}).await?;
    let Some(cron) = listed.crons.into_iter().find(|cron| cron.id == id) else {
        return Err(Error::Failed(format!(
            "no cron entry {id}; see `crabtalk cron list`"
        )));
    };
    if context.global.json {
        return Ok(context.console.screen.json(&json::of(&cron))?);
    }
    let quiet = quiet(&cron);
    let runs = match cron.skipped {
        0 => cron.fired.to_string(),
        skipped => format!("{}, {skipped} skipped", cron.fired),
    };
    let next = match cron.next_fire.as_str() {
        "" => cron.next_in_words.clone(),
        at => format!("{} ({})", cron.next_in_words, local(at)),
    };
    let rows = [
        ("entry", id.to_string()),
        ("next", next),
        ("when", when(&cron)),
        ("skill", cron.skill.clone()),
        (
            "prompt",
            visible(format!("{} {}", cron.args, cron.content).trim()).into_owned(),
        ),
        ("agent", cron.agent.clone()),
        ("sender", cron.sender.clone()),
        ("folder", cron.cwd.clone()),
        ("quiet", quiet),
        ("missed", cron.missed.clone()),
        ("asks", cron.asks.clone()),
        ("notify", cron.notify.clone()),
        ("made by", cron.by.clone()),
        ("runs", runs),
        ("last", last(&cron)),
        ("error", summary(&cron.last_error)),
        ("cost", cost(cron.tokens, cron.money)),
        ("problem", cron.problem.clone()),
    ];
    context.line(&table::pairs(&rows))?;
    if cron.fired + cron.skipped == 0 {
        return Ok(());
    }
    context.line("")?;
    runs_of(context, Some(id), SHOWN_RUNS).await
}

fn quiet(cron: &CronInfo) -> String {
    match cron.quiet_start.as_str() {
        "" => String::new(),
        start => format!("{start}-{}", cron.quiet_end),
    }
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let listed = context.call(ListCronsMsg {}).await?;
    let columns: &[Column<CronInfo>] = &[
        ("id", |cron| cron.id.to_string()),
        ("next", |cron| cron.next_in_words.clone()),
        ("task", task),
        ("when", when),
        ("agent", |cron| {
            let own = if cron.by_agent { " (its own)" } else { "" };
            format!("{}{own}", cron.agent)
        }),
        ("sender", |cron| match cron.sender.as_str() {
            "cron" => String::new(),
            sender => sender.to_owned(),
        }),
        ("quiet", quiet),
        ("folder", |cron| cron.cwd.clone()),
        ("last", last),
        ("runs", |cron| match cron.skipped {
            0 => cron.fired.to_string(),
            skipped => format!("{}, {skipped} skipped", cron.fired),
        }),
        ("cost", |cron| cost(cron.tokens, cron.money)),
    ];
    for problem in &listed.problems {
        context.problem(&format!("crabtalk: not active: {}", visible(problem)))?;
    }
    let none = match listed.problems.is_empty() {
        true => "no cron entries; `crabtalk cron add --help` shows how to add one",
        false => "no cron entries are active until this file is fixed",
    };
    context.list(&listed.crons, columns, none)?;
    if context.global.json {
        return Ok(());
    }
    for cron in listed.crons.iter().filter(|cron| !cron.problem.is_empty()) {
        context.problem(&format!("entry {}: {}", cron.id, cron.problem))?;
    }
    Ok(())
}

fn when(cron: &CronInfo) -> String {
    if !cron.at.is_empty() {
        return "once".into();
    }
    format!("{} {}", cron.schedule, cron.zone).trim().to_owned()
}

fn last(cron: &CronInfo) -> String {
    match cron.last_outcome.as_str() {
        "" => "-".to_owned(),
        outcome if cron.failures > 1 => format!("{outcome} ({} in a row)", cron.failures),
        outcome => outcome.to_owned(),
    }
}

fn task(cron: &CronInfo) -> String {
    let skill = match cron.skill.as_str() {
        "" => String::new(),
        skill => format!("/{skill} "),
    };
    let said = summary(&format!("{skill}{} {}", cron.args, cron.content));
    let said = said.trim();
    match said.char_indices().nth(MAX_SHOWN) {
        Some((cut, _)) => format!("{}…", &said[..cut]),
        None => said.to_owned(),
    }
}

fn cost(tokens: u64, spent: Option<f64>) -> String {
    match (tokens, spent) {
        (0, None) => "-".into(),
        (tokens, None) => format!("{tokens} tokens"),
        (tokens, Some(spent)) => format!("{tokens} tokens, {}", money(spent)),
    }
}

async fn runs_of(context: &mut Context, id: Option<u64>, limit: u32) -> Result<(), Error> {
    let request = ListCronRunsMsg { id, limit };
    let listed = context.call(request).await?;
    let columns: &[Column<CronRun>] = &[
        ("entry", |run| run.id.to_string()),
        ("due", due),
        ("began", |run| local(&run.fired)),
        ("outcome", outcome),
        ("took", |run| match run.duration_ms {
            0 => "-".into(),
            ms => format!("{:.1} s", ms as f64 / 1000.0),
        }),
        ("cost", |run| cost(run.tokens, run.money)),
        ("why", why),
    ];
    context.list(&listed.runs, columns, "no runs yet")
}

fn due(run: &CronRun) -> String {
    match (run.due.as_str(), run.last_due.as_str()) {
        ("", _) => "by hand".to_owned(),
        (due, "") => local(due),
        (due, last) => format!("{} to {}", local(due), local(last)),
    }
}

fn outcome(run: &CronRun) -> String {
    match run.count {
        0 | 1 if run.late => format!("{}, late", run.outcome),
        0 | 1 => run.outcome.clone(),
        100 => format!("{} 100 times or more", run.outcome),
        count => format!("{} {count} times", run.outcome),
    }
}

fn why(run: &CronRun) -> String {
    let refused = run.refused.iter().map(|what| format!("refused {what}"));
    let mut why: Vec<String> = refused.collect();
    if !run.reason.is_empty() {
        why.insert(0, run.reason.clone());
    }
    why.join("; ")
}

async fn test(
    context: &mut Context,
    schedule: String,
    zone: Option<String>,
    quiet: Option<String>,
    count: u32,
) -> Result<(), Error> {
    let (quiet_start, quiet_end) = window(quiet.as_deref().unwrap_or("none"))?;
    let request = TestCronMsg {
        schedule,
        zone: zone.unwrap_or_default(),
        count,
        quiet_start,
        quiet_end,
    };
    let times = context.call(request).await?;
    let objects = times.times.iter().zip(&times.words);
    let objects =
        objects.map(|(time, words)| json!({"time": time, "words": words, "zone": times.zone}));
    if context.for_scripts(objects)? {
        return Ok(());
    }
    // In the schedule's time zone, which the offset shows.
    let rows = times.times.into_iter().zip(times.words);
    let rows = rows.map(|(time, words)| vec![time, words]);
    context.print_table(
        &["time", "in words"],
        rows,
        "never: the time has passed, or falls in quiet hours",
    )
}
