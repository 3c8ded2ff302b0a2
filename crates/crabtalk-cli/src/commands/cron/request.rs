//! `cron add` and `cron edit`: builds requests from the command line.

use super::Context;
use crate::args::{CronAdd, CronEdit, CronOptions};
use crate::error::Error;
use crate::json;
use crate::text::summary;
use crabtalk_proto::{CreateCronMsg, CronInfo, SetCronMsg};

/// Splits `23:00-07:00` into start and end; both are empty for `none`.
pub(super) fn window(quiet: &str) -> Result<(String, String), Error> {
    if quiet == "none" {
        return Ok(Default::default());
    }
    let ends = quiet.split_once('-');
    let ends = ends.map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()));
    ends.ok_or_else(|| Error::Usage(format!("--quiet {quiet}: write it as 23:00-07:00")))
}

/// The fields that the common options set, as a `SetCronMsg`, which has all of them.
fn fields(context: &Context, options: CronOptions) -> Result<SetCronMsg, Error> {
    let quiet = options.quiet.as_deref().map(window).transpose()?;
    let (quiet_start, quiet_end) = quiet.unzip();
    // Later runs do not use the shell's current folder.
    let cwd = match context.global.cwd {
        Some(_) => context.cwd()?,
        None => None,
    };
    Ok(SetCronMsg {
        at: options
            .after
            .map(|after| format!("in {after}"))
            .or(options.at),
        zone: none(options.zone),
        skill: none(options.skill),
        cwd,
        quiet_start,
        quiet_end,
        missed: options.missed,
        asks: options.asks,
        notify: options.notify,
        ..SetCronMsg::default()
    })
}

/// Converts `none` to an empty text.
fn none(text: Option<String>) -> Option<String> {
    text.map(|text| if text == "none" { String::new() } else { text })
}

/// Schedule, skill and prompt of a new entry.
#[derive(Debug, PartialEq, Eq, Default)]
struct Task {
    schedule: String,
    skill: String,
    content: String,
}

/// Parses the words of `cron add`: a schedule unless a time was given, then a skill
/// or a prompt. A single name, or a name before a quoted text, is a skill.
fn task(mut words: Vec<String>, timed: bool, skill: Option<String>) -> Result<Task, Error> {
    let mut task = Task {
        skill: skill.unwrap_or_default(),
        ..Task::default()
    };
    if !timed {
        if words.is_empty() {
            let message = "no time given: use `crabtalk cron add \"0 9 * * *\" \"a prompt\"`, --in or \
                           --at";
            return Err(Error::Usage(message.into()));
        }
        let first = words.remove(0);
        // Without quotes, the five fields are separate words.
        let fields = first.split_whitespace().count();
        let is_field = |word: &String| {
            word.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"*/,-".contains(&b))
        };
        task.schedule = first;
        let unquoted = fields == 1 && !task.schedule.starts_with('@') && words.len() >= 4;
        if unquoted && is_field(&task.schedule) && words[..4].iter().all(is_field) {
            for field in words.drain(..4) {
                task.schedule.push(' ');
                task.schedule.push_str(&field);
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
    let names_skill = task.skill.is_empty()
        && words.first().is_some_and(|first| {
            let alone = words.len() == 1;
            let quoted = words
                .get(1)
                .is_some_and(|next| next.contains(char::is_whitespace));
            is_name(first) && (first.starts_with('/') || alone || quoted)
        });
    if names_skill {
        task.skill = words.remove(0).trim_start_matches('/').to_owned();
    }
    task.content = words.join(" ");
    if task.skill.is_empty() && task.content.trim().is_empty() {
        return Err(Error::Usage(
            "no task given: add a skill, a prompt, or both".into(),
        ));
    }
    Ok(task)
}

pub(super) async fn add(context: &mut Context, add: CronAdd) -> Result<(), Error> {
    let fields = fields(context, add.options)?;
    let task = task(add.text, fields.at.is_some(), fields.skill)?;
    let request = CreateCronMsg {
        schedule: task.schedule,
        skill: task.skill,
        content: Some(task.content),
        agent: context.agent(),
        sender: add.sender.unwrap_or_default(),
        by: context.global.sender.clone(),
        at: fields.at,
        zone: fields.zone,
        cwd: fields.cwd,
        quiet_start: fields.quiet_start,
        quiet_end: fields.quiet_end,
        once: add.once,
        missed: fields.missed,
        asks: fields.asks,
        notify: fields.notify,
        paused: Some(add.paused),
        args: None,
    };
    let info = context.call(request).await?;
    saved(context, &info)?;
    if info.would_fail.is_empty() {
        return Ok(());
    }
    context.problem(&format!(
        "crabtalk: its runs will fail: {}; add the skill, or remove the entry with `crabtalk cron rm {}`",
        summary(&info.would_fail),
        info.id
    ))
}

/// Reports an entry that was saved. Warns if its unattended runs have no permissions.
fn saved(context: &mut Context, info: &CronInfo) -> Result<(), Error> {
    let said = format!(
        "crabtalk: entry {}: next run {}",
        info.id, info.next_in_words
    );
    context.done(json::of(info), &said)?;
    if info.unattended.is_empty() {
        return Ok(());
    }
    context.problem(&format!(
        "crabtalk: {}; add permissions with `crabtalk agents edit {}`, or send its questions to \
         the inbox: `crabtalk cron edit {} --asks inbox`",
        summary(&info.unattended),
        info.agent,
        info.id
    ))
}

pub(super) async fn edit(context: &mut Context, edit: CronEdit) -> Result<(), Error> {
    let request = SetCronMsg {
        schedule: edit.schedule,
        args: none(edit.args),
        content: (!edit.text.is_empty()).then(|| edit.text.join(" ")),
        once: edit.once,
        ..fields(context, edit.options)?
    };
    if request == SetCronMsg::default() {
        return Err(Error::Usage(format!(
            "nothing to change: see `crabtalk cron edit {} --help`",
            edit.id
        )));
    }
    let info = context
        .call(SetCronMsg {
            id: edit.id,
            ..request
        })
        .await?;
    saved(context, &info)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str], timed: bool) -> Result<(String, String, String), String> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let task = task(words, timed, None).map_err(|error| error.to_string())?;
        Ok((task.schedule, task.skill, task.content))
    }

    #[test]
    fn words_split_into_schedule_skill_and_prompt() {
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
            // The daemon refuses bad schedules.
            (
                &["every monday", "review"],
                false,
                ("every monday", "review", ""),
            ),
        ] {
            let (schedule, skill, content) = words(given, timed).unwrap();
            assert_eq!((schedule.as_str(), skill.as_str(), content.as_str()), want);
        }
        assert!(words(&[], false).unwrap_err().contains("no time"));
        assert!(words(&["@daily"], false).unwrap_err().contains("no task"));
        assert!(words(&[], true).unwrap_err().contains("no task"));
    }

    #[test]
    fn quiet_hours_are_two_times() {
        let both = window("23:00 - 07:00").unwrap();
        assert_eq!(both, ("23:00".to_owned(), "07:00".to_owned()));
        assert!(window("23:00").is_err());
        assert_eq!(window("none").unwrap(), Default::default());
    }
}
