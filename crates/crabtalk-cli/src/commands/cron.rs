//! `cron`: what runs by itself.

use super::{Column, Context};
use crate::args::{Cron, CronAdd, CronEdit};
use crate::error::Error;
use crate::text::{local, money, summary};
use crate::{json, table};
use crabtalk_proto::{
    CreateCronMsg, CronInfo, CronRun, DeleteCronMsg, ListCronRunsMsg, ListCronsMsg, RunCronMsg,
    SetCronMsg, TestCronMsg, visible,
};
use serde_json::json;

/// Characters of a prompt that a list shows.
const MAX_SHOWN: usize = 40;

pub(super) async fn run(context: &mut Context, command: Cron) -> Result<(), Error> {
    match command {
        Cron::List => list(context).await,
        Cron::Add(add) => self::add(context, *add).await,
        Cron::Show { id } => show(context, id).await,
        Cron::Edit(edit) => self::edit(context, *edit).await,
        Cron::Rm { id } => {
            let request = DeleteCronMsg { id };
            context.call(request).await?;
            context.done(
                json!({"removed": id}),
                &format!("crabtalk: entry {id} is removed"),
            )
        }
        Cron::Runs { id, limit } => runs_of(context, id, limit).await,
        Cron::Run { id } => {
            let request = RunCronMsg { id };
            let run = context.call(request).await?;
            let said = format!(
                "crabtalk: entry {id} runs in the conversation of {} with {}; see `crabtalk cron runs {id}`",
                run.agent, run.sender
            );
            context.done(json::of(&run), &said)
        }
        Cron::Pause { id } => pause(context, id, true).await,
        Cron::Resume { id } => pause(context, id, false).await,
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
        true => format!("crabtalk: entry {id} is paused"),
        false => format!("crabtalk: entry {id} goes on, {}", info.next_in_words),
    };
    context.done(json::of(&info), &said)
}

/// `23:00-07:00` as its two ends.
fn window(quiet: Option<String>) -> Result<(String, String), Error> {
    let Some(quiet) = quiet else {
        return Ok(Default::default());
    };
    let ends = quiet.split_once('-');
    let ends = ends.map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()));
    ends.ok_or_else(|| Error::Usage(format!("--quiet {quiet}: write it as 23:00-07:00")))
}

/// When, which skill, and what is said.
#[derive(Debug, PartialEq, Eq, Default)]
struct Said {
    schedule: String,
    skill: String,
    content: String,
}

/// Makes out what the words of the command line are. A schedule comes first
/// unless a time was given; a bare name that stands alone, or before a text that
/// was quoted, is a skill.
fn said(mut words: Vec<String>, timed: bool, skill: Option<String>) -> Result<Said, Error> {
    let mut said = Said {
        skill: skill.unwrap_or_default(),
        ..Said::default()
    };
    if !timed {
        if words.is_empty() {
            let message =
                "say when: `crabtalk cron add \"0 9 * * *\" \"a prompt\"`, or --in, or --at";
            return Err(Error::Usage(message.into()));
        }
        let first = words.remove(0);
        // Five fields without quotes are five words.
        let fields = first.split_whitespace().count();
        let is_field = |word: &String| {
            word.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"*/,-".contains(&b))
        };
        said.schedule = first;
        let unquoted = fields == 1 && !said.schedule.starts_with('@') && words.len() >= 4;
        if unquoted && is_field(&said.schedule) && words[..4].iter().all(is_field) {
            for field in words.drain(..4) {
                said.schedule.push(' ');
                said.schedule.push_str(&field);
            }
        }
    }
    let is_name = |word: &str| {
        let name = word.strip_prefix('/').unwrap_or(word);
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let names_skill = said.skill.is_empty()
        && words.first().is_some_and(|first| {
            let alone = words.len() == 1;
            let quoted = words
                .get(1)
                .is_some_and(|next| next.contains(char::is_whitespace));
            is_name(first) && (first.starts_with('/') || alone || quoted)
        });
    if names_skill {
        said.skill = words.remove(0).trim_start_matches('/').to_owned();
    }
    said.content = words.join(" ");
    if said.skill.is_empty() && said.content.trim().is_empty() {
        return Err(Error::Usage(
            "say what is to be done: a skill, a prompt, or both".into(),
        ));
    }
    Ok(said)
}

async fn add(context: &mut Context, add: CronAdd) -> Result<(), Error> {
    let at = add.after.map(|after| format!("in {after}")).or(add.at);
    let said = said(add.text, at.is_some(), add.skill)?;
    let (quiet_start, quiet_end) = window(add.quiet)?;
    // The shell's folder says nothing about where something works in a week.
    let cwd = match context.global.cwd {
        Some(_) => context.cwd()?,
        None => None,
    };
    let request = CreateCronMsg {
        schedule: said.schedule,
        skill: said.skill,
        content: Some(said.content),
        agent: context.agent(),
        sender: add.sender.unwrap_or_default(),
        by: context.global.sender.clone(),
        at,
        zone: add.zone,
        cwd,
        quiet_start: Some(quiet_start),
        quiet_end: Some(quiet_end),
        once: add.once,
        missed: add.missed,
        asks: add.asks,
        notify: add.notify,
        paused: Some(add.paused),
        args: None,
    };
    let info = context.call(request).await?;
    let said = format!("crabtalk: entry {}, {}", info.id, info.next_in_words);
    context.done(json::of(&info), &said)?;
    warn_of_rights(context, &info)?;
    if info.would_fail.is_empty() {
        return Ok(());
    }
    context.problem(&format!(
        "crabtalk: as things are it will fail: {}; write the skill before then, or `crabtalk cron rm {}`",
        summary(&info.would_fail),
        info.id
    ))
}

/// Says that the agent may do nothing while nobody watches, and what helps.
fn warn_of_rights(context: &mut Context, info: &CronInfo) -> Result<(), Error> {
    if info.unattended.is_empty() {
        return Ok(());
    }
    context.problem(&format!(
        "crabtalk: {}; allow what it needs in its file (`crabtalk agents show {}`), or let it ask: \
         `crabtalk cron edit {} --asks inbox`",
        summary(&info.unattended),
        info.agent,
        info.id
    ))
}

async fn edit(context: &mut Context, edit: CronEdit) -> Result<(), Error> {
    let none =
        |text: Option<String>| text.map(|text| if text == "none" { String::new() } else { text });
    let quiet = match none(edit.quiet) {
        Some(quiet) if quiet.is_empty() => Some(Default::default()),
        Some(quiet) => Some(window(Some(quiet))?),
        None => None,
    };
    let (quiet_start, quiet_end) = quiet.unzip();
    let cwd = match context.global.cwd {
        Some(_) => context.cwd()?,
        None => None,
    };
    let request = SetCronMsg {
        id: edit.id,
        paused: None,
        schedule: edit.schedule,
        at: edit.after.map(|after| format!("in {after}")).or(edit.at),
        skill: none(edit.skill),
        args: None,
        content: (!edit.text.is_empty()).then(|| edit.text.join(" ")),
        cwd,
        zone: none(edit.zone),
        quiet_start,
        quiet_end,
        once: edit.once,
        missed: edit.missed,
        asks: edit.asks,
        notify: edit.notify,
    };
    let empty = SetCronMsg {
        id: edit.id,
        ..SetCronMsg::default()
    };
    if request == empty {
        return Err(Error::Usage(format!(
            "say what to change: `crabtalk cron edit {} --help` lists it",
            edit.id
        )));
    }
    let info = context.call(request).await?;
    let said = format!("crabtalk: entry {}, {}", info.id, info.next_in_words);
    context.done(json::of(&info), &said)?;
    warn_of_rights(context, &info)
}

/// Runs that `show` lists.
const SHOWN_RUNS: u32 = 5;

async fn show(context: &mut Context, id: u64) -> Result<(), Error> {
    let listed = context.call(ListCronsMsg {}).await?;
    let Some(cron) = listed.crons.into_iter().find(|cron| cron.id == id) else {
        return Err(Error::Failed(format!(
            "there is no cron entry {id}; list them"
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
    let rows = rows.into_iter().filter(|(_, text)| !text.is_empty());
    context.line(&table::pairs(&rows.collect::<Vec<_>>()))?;
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
        ("what", what),
        ("when", when),
        ("agent", |cron| {
            let own = if cron.by_agent { " (its own)" } else { "" };
            format!("{}{own}", cron.agent)
        }),
        ("sender", |cron| cron.sender.clone()),
        ("quiet", quiet),
        ("folder", |cron| cron.cwd.clone()),
        ("last", last),
        ("runs", |cron| match cron.skipped {
            0 => cron.fired.to_string(),
            skipped => format!("{}, {skipped} skipped", cron.fired),
        }),
        ("cost", |cron| cost(cron.tokens, cron.money)),
    ];
    // A column that says nothing takes room from those that do.
    let says = |(title, cell): &&Column<CronInfo>| {
        !["sender", "quiet", "folder"].contains(title)
            || listed
                .crons
                .iter()
                .any(|cron| !["", "cron"].contains(&&*cell(cron)))
    };
    let columns: Vec<Column<CronInfo>> = columns.iter().filter(says).copied().collect();
    for problem in &listed.problems {
        context.problem(&format!("crabtalk: not in force: {}", visible(problem)))?;
    }
    let none = match listed.problems.is_empty() {
        true => "nothing runs by itself; see `crabtalk cron add --help`",
        false => "nothing runs by itself until that file is mended",
    };
    context.list(&listed.crons, &columns, none)?;
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

fn what(cron: &CronInfo) -> String {
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
    context.list(&listed.runs, columns, "nothing was due yet")
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
    let (quiet_start, quiet_end) = window(quiet)?;
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
    // In the zone of the schedule, which the offset tells.
    let rows = times.times.into_iter().zip(times.words);
    let rows = rows.map(|(time, words)| vec![time, words]);
    context.print_table(
        &["time", "in words"],
        rows,
        "never: it has passed, or it is always quiet",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str], timed: bool) -> Result<(String, String, String), String> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let said = said(words, timed, None).map_err(|error| error.to_string())?;
        Ok((said.schedule, said.skill, said.content))
    }

    #[test]
    fn words_are_a_schedule_a_skill_and_a_prompt() {
        for (given, timed, want) in [
            (
                &["0 9 * * 1-5", "review", "look at the open branches"][..],
                false,
                ("0 9 * * 1-5", "review", "look at the open branches"),
            ),
            (
                &["0 9 * * *", "look at the open branches"],
                false,
                ("0 9 * * *", "", "look at the open branches"),
            ),
            (
                &["@daily", "check-feeds"],
                false,
                ("@daily", "check-feeds", ""),
            ),
            (
                &["@daily", "/review", "now"],
                false,
                ("@daily", "review", "now"),
            ),
            (
                &["0", "9", "*", "*", "1-5", "/review"],
                false,
                ("0 9 * * 1-5", "review", ""),
            ),
            (
                &["stretch", "your", "legs"],
                true,
                ("", "", "stretch your legs"),
            ),
            (&["stretch your legs"], true, ("", "", "stretch your legs")),
            // Whatever it is, the daemon says what is wrong with it.
            (
                &["every monday", "review"],
                false,
                ("every monday", "review", ""),
            ),
        ] {
            let (schedule, skill, content) = words(given, timed).unwrap();
            assert_eq!((schedule.as_str(), skill.as_str(), content.as_str()), want);
        }
        assert!(words(&[], false).unwrap_err().contains("say when"));
        assert!(words(&["@daily"], false).unwrap_err().contains("say what"));
        assert!(words(&[], true).unwrap_err().contains("say what"));
    }

    #[test]
    fn quiet_hours_are_two_times() {
        let both = window(Some("23:00 - 07:00".into())).unwrap();
        assert_eq!(both, ("23:00".to_owned(), "07:00".to_owned()));
        assert!(window(Some("23:00".into())).is_err());
        assert_eq!(window(None).unwrap(), Default::default());
    }
}
