//! Judges shell commands (GATE-2).
//!
//! Two readers look at a command. Rules that refuse look through the general
//! one, as widely as it can see. A narrow rule, one whose pattern is not
//! everything, allows only what the strict reader understands, and what runs
//! then is the strict reader's print of the judged words.
//!
//! Invariant: a command that a narrow rule allowed never runs as it was
//! written; one that a person or a rule for everything allowed always does.

use super::bash::{self, FileUse, Inner, Part};
use super::places::Places;
use super::plain::{Plain, Simple, base_name};
use super::repository::{self, Sends};
use super::rules::{Opinion, Question, name_of, opinion_of};
use super::{options, path, pattern};
use crate::gate::pattern::Holes;
use crabtalk_domain::tool::{Reach, ShellCommand};
use crabtalk_domain::{Permission, PermissionRule};
use std::path::{Path, PathBuf};

/// Devices that hold nothing and reach nobody.
const HARMLESS_FILES: [&str; 4] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Programs that write files whose names and content a command chooses, so
/// that a repository's configuration may be among them.
const WRITERS: [&str; 17] = [
    "cp", "mv", "ln", "tar", "bsdtar", "gtar", "unzip", "rsync", "split", "gcc", "cc", "clang",
    "g++", "sort", "gzip", "curl", "wget",
];

fn tame(text: String) -> ShellCommand {
    text.into()
}

impl Question<'_> {
    /// Judges a command, and says what runs in its place.
    pub(super) fn command(&self, text: &str) -> (Opinion, Option<ShellCommand>) {
        let whole = self.whole(text);
        let narrow: Vec<&PermissionRule> = self
            .rules_of(&[self.tool])
            .filter(|rule| is_narrow(rule))
            .collect();
        if narrow.is_empty() {
            return (whole, None);
        }
        let mut plain = match Plain::read(text, self.user_home) {
            Ok(plain) => plain,
            Err(why) if whole.permission == Permission::Ask => {
                let reason = format!("it {why}, and no narrow rule allows that: {}", whole.reason);
                return (Opinion::new(Permission::Ask, reason), None);
            }
            Err(_) => return (whole, None),
        };
        let opinion = self.plain(&plain, &narrow).and(self.refused(text));
        if opinion.permission == Permission::Allow {
            for command in &mut plain.commands {
                if let Some(words) = options::tamed(command) {
                    command.words = words;
                }
            }
            return (opinion, Some(tame(plain.printed())));
        }
        if whole.permission == Permission::Allow {
            return (whole, None);
        }
        (opinion.and(whole), None)
    }

    /// What the rules for everything and those that refuse say of a command as
    /// it is written.
    fn whole(&self, text: &str) -> Opinion {
        let script = bash::split(text);
        let parts = script.parts.iter().map(|part| self.part(part));
        let files = script.files.iter().map(|file| self.file(file));
        // A command without any part, a comment, runs nothing.
        let opinion = parts.chain(files).reduce(Opinion::and).unwrap_or_else(|| {
            self.bare(&[self.tool])
                .unwrap_or_else(|| Opinion::new(Permission::Ask, "the command is empty"))
        });
        if opinion.permission != Permission::Allow {
            return opinion;
        }
        match self.places().any(&script) {
            Ok(()) => opinion,
            Err(refusal) => refusal,
        }
    }

    fn places(&self) -> Places<'_> {
        Places {
            disk: self.disk,
            reach: self.reach,
            user_home: self.user_home,
            folders: vec![
                self.disk
                    .resolve(self.cwd)
                    .unwrap_or_else(|| self.cwd.into()),
            ],
        }
    }

    /// What refusing rules say, the print included: it is what would run.
    fn refused(&self, text: &str) -> Opinion {
        let script = bash::split(text);
        let of = |part: &Part| self.refusing(part);
        let opinions = script.parts.iter().flat_map(of);
        let none = Opinion::new(Permission::Allow, "");
        opinions.fold(none, Opinion::and)
    }

    /// What narrow rules say of plain commands.
    fn plain(&self, plain: &Plain, narrow: &[&PermissionRule]) -> Opinion {
        let mut places = self.places();
        let mut writes = false;
        let mut all: Option<Opinion> = None;
        for command in &plain.commands {
            let mut opinion = self.simple(command, narrow);
            if opinion.permission == Permission::Allow {
                let held = self.held(command, &places, writes);
                let held = held.map_err(|why| Opinion::new(Permission::Ask, why));
                if let Err(refusal) = held.and(places.narrow(&command.words)) {
                    opinion = refusal;
                }
            }
            writes |= WRITERS.contains(&base_name(&command.name()));
            all = Some(match all {
                Some(all) => all.and(opinion),
                None => opinion,
            });
        }
        let all = all.unwrap_or_else(|| Opinion::new(Permission::Ask, "the command is empty"));
        all.and(self.refused(&plain.printed()))
    }

    /// Whether a repository keeps git from being run.
    fn held(&self, command: &Simple, places: &Places<'_>, writes: bool) -> Result<(), String> {
        if base_name(&command.name()) != "git" {
            return Ok(());
        }
        if writes {
            return Err("git would run after a command that may write its configuration".into());
        }
        let words: Vec<String> = command.words.iter().skip(1).map(|w| w.text()).collect();
        let sends = words
            .iter()
            .position(|word| word == "push")
            .map(|at| Sends {
                to: words[at + 1..]
                    .iter()
                    .find(|word| !word.starts_with('-'))
                    .cloned(),
            });
        let other = words
            .iter()
            .position(|word| word == "-C")
            .and_then(|at| words.get(at + 1));
        for folder in &places.folders {
            let folder = other.map_or_else(|| folder.clone(), |other| folder.join(other));
            repository::check(self.disk, &folder, sends.as_ref())
                .map_err(|why| format!("the repository {why}"))?;
        }
        Ok(())
    }

    /// What rules say of one plain command.
    fn simple(&self, command: &Simple, narrow: &[&PermissionRule]) -> Opinion {
        let mut held = None;
        let text = command.matched();
        for rule in narrow {
            let pattern = &self.homed(rule.pattern.as_deref().unwrap_or_default());
            if options::spells_out(pattern, command) {
                return opinion_of(rule);
            }
            if !pattern::is_literal(pattern) && pattern::command(pattern, &text, Holes::Sure) {
                match options::harmless(command, pattern) {
                    Ok(()) => return opinion_of(rule),
                    Err(why) => held = Some(format!("`{}` {why}", readable(&command.name()))),
                }
            }
        }
        let otherwise = self.everything().or_else(|| self.bare(&[self.tool]));
        match (otherwise, held) {
            (Some(opinion), None) => opinion,
            (Some(opinion), Some(_)) if opinion.permission != Permission::Ask => opinion,
            (_, Some(why)) => Opinion::new(Permission::Ask, why),
            (None, None) => {
                let reason = format!("`{}` is allowed by no rule", readable(&command.printed()));
                Opinion::new(Permission::Ask, reason)
            }
        }
    }

    /// A pattern with the home in place of `~/` at the beginning of a word, as
    /// words have it.
    fn homed(&self, pattern: &str) -> String {
        let Some(home) = self.user_home.and_then(Path::to_str) else {
            return pattern.to_owned();
        };
        let home = format!("{}/", home.trim_end_matches('/'));
        let word = |word: &str| match word.strip_prefix("~/") {
            Some(rest) => format!("{home}{rest}"),
            None => word.to_owned(),
        };
        let words: Vec<String> = pattern.split(' ').map(word).collect();
        words.join(" ")
    }

    /// What a pattern that is everything allows.
    fn everything(&self) -> Option<Opinion> {
        let is_everything = |rule: &&PermissionRule| {
            rule.permission == Permission::Allow
                && rule.pattern.as_deref().is_some_and(pattern::is_everything)
        };
        self.rules_of(&[self.tool])
            .find(is_everything)
            .map(opinion_of)
    }

    fn part(&self, part: &Part) -> Opinion {
        let mut said = self.patterns(part);
        if let Some(allowed) = self.everything() {
            said = Some(match said {
                Some(said) => allowed.and(said),
                None => allowed,
            });
        }
        let opinion = said.or_else(|| self.bare(&[self.tool])).unwrap_or_else(|| {
            let reason = match &part.guard {
                Some(guard) => guard.clone(),
                None => format!("`{}` is allowed by no rule", readable(&part.text)),
            };
            Opinion::new(Permission::Ask, reason)
        });
        self.behind(&part.inner)
            .into_iter()
            .fold(opinion, Opinion::and)
    }

    /// What refusing rules say of a part and of what is behind it.
    fn refusing(&self, part: &Part) -> Vec<Opinion> {
        let mut opinions = self.behind(&part.inner);
        opinions.extend(self.patterns(part));
        opinions
    }

    /// What refusing rules say of a part: they match whatever may be meant.
    fn patterns(&self, part: &Part) -> Option<Opinion> {
        let mut best: Option<Opinion> = None;
        for rule in self.rules_of(&[self.tool]) {
            let Some(pattern) = rule.pattern.as_deref() else {
                continue;
            };
            let found = match rule.permission {
                Permission::Allow => None,
                Permission::Ask | Permission::Deny if refuses(pattern, part, Holes::Sure) => {
                    Some(opinion_of(rule))
                }
                Permission::Ask | Permission::Deny => {
                    refuses(pattern, part, Holes::Maybe).then(|| {
                        let reason = part.guard.clone().unwrap_or_else(|| {
                            format!("`{}` is not fully known", readable(&part.text))
                        });
                        Opinion::new(
                            Permission::Ask,
                            format!("{reason}, and may match `{}`", name_of(rule)),
                        )
                    })
                }
            };
            best = match (best, found) {
                (Some(best), Some(found)) => Some(best.and(found)),
                (best, found) => best.or(found),
            };
        }
        best
    }

    /// What refusing rules say of the commands behind a command.
    fn behind(&self, inner: &[Inner]) -> Vec<Opinion> {
        let mut opinions = Vec::new();
        for Inner { part, sure } in inner {
            if let Some(opinion) = self.patterns(part) {
                let permission = if *sure {
                    opinion.permission
                } else {
                    Permission::Ask
                };
                opinions.push(Opinion::new(permission, opinion.reason));
            }
            opinions.extend(self.behind(&part.inner));
        }
        opinions
    }

    /// Judges a file of a redirection by the rules of the file tools; where
    /// they say nothing, whoever allows every command allows its files.
    fn file(&self, file: &FileUse) -> Opinion {
        let (tools, what): (&[&str], _) = if file.write {
            (&["write", "edit"], "written")
        } else {
            (&["read"], "read")
        };
        let every_command = self.every_command();
        let Some(path) = self.path_of(file) else {
            let strict = self
                .rules_of(tools)
                .find(|rule| rule.permission != Permission::Allow);
            let reason = format!("a file that is not known before would be {what}");
            let known_before = file.path.is_none() || file.moved;
            return match (every_command, strict) {
                (Some(allowed), None) if known_before => allowed,
                _ => Opinion::new(Permission::Ask, reason),
            };
        };
        if HARMLESS_FILES
            .iter()
            .any(|harmless| path == Path::new(harmless))
        {
            return Opinion::new(Permission::Allow, "nothing is kept");
        }
        match (self.reach)(&path) {
            Reach::Readable if !file.write => {
                return Opinion::new(Permission::Allow, "it is the conversation's own");
            }
            Reach::Closed | Reach::Readable => {
                let reason = format!(
                    "{} lies in CrabTalk's own home, which is closed",
                    path.display()
                );
                return Opinion::new(Permission::Deny, reason);
            }
            Reach::Open | Reach::Above => {}
        }
        // Some shells connect to the network by these names.
        if path.starts_with("/dev/tcp") || path.starts_with("/dev/udp") {
            return every_command
                .unwrap_or_else(|| Opinion::new(Permission::Ask, "it would open a connection"));
        }
        self.by_rule(tools, &|rule| self.rule_matches(rule, &path))
            .or(every_command)
            .unwrap_or_else(|| self.file_default(&path, file.write))
    }

    fn path_of(&self, file: &FileUse) -> Option<PathBuf> {
        let text = file.path.as_deref()?;
        if HARMLESS_FILES.contains(&text) {
            return Some(text.into());
        }
        let written = Path::new(text);
        if file.tilde {
            return self
                .disk
                .resolve(&path::absolute(written, self.cwd, self.user_home)?);
        }
        if file.moved && !written.is_absolute() {
            return None;
        }
        // Not `absolute`: an unquoted `~` has been dealt with, this one is a
        // name, and `..` after a link is for the disk to follow.
        let full = self.cwd.join(written);
        let in_proc = |path: PathBuf| path.starts_with("/proc");
        if path::absolute(&full, Path::new("/"), None).is_none_or(in_proc) {
            return None;
        }
        self.disk.resolve(&full)
    }

    /// Whether any command at all is allowed: a bare `allow`, or `*`.
    fn every_command(&self) -> Option<Opinion> {
        self.rules_of(&[self.tool])
            .filter(|rule| rule.pattern.as_deref().is_none_or(pattern::is_everything))
            .max_by_key(|rule| rule.permission)
            .filter(|rule| rule.permission == Permission::Allow)
            .map(opinion_of)
    }
}

/// Whether a rule allows some commands and not all.
fn is_narrow(rule: &PermissionRule) -> bool {
    let is_some = |pattern: &str| !pattern::is_everything(pattern);
    rule.permission == Permission::Allow && rule.pattern.as_deref().is_some_and(is_some)
}

/// Whether a refusing pattern reaches a part, however both are quoted.
fn refuses(pattern: &str, part: &Part, holes: Holes) -> bool {
    let unquoted = pattern.replace(['\'', '"', '\\'], "");
    pattern::command(pattern, &part.text, holes)
        || pattern::command(pattern, &part.exact, holes)
        || pattern::command(&unquoted, &part.text, holes)
}

/// A part's text for a message: holes as dots, and not too much of it.
fn readable(text: &str) -> String {
    /// Longer texts are in the detail anyway.
    const MAX_CHARS: usize = 120;
    let shown: String = text.chars().take(MAX_CHARS).collect();
    shown.replace(pattern::HOLE, "...")
}
