//! Looks which places the words of a command name: `/proc`, and CrabTalk's own
//! home, which is closed to commands that a rule allows as it is to the file
//! tools (GATE-3).
//!
//! Invariant: a word counts as every path that a program may take it for: the
//! whole, what stands behind `=`, and every piece with a `/`.

use super::bash::{Part, SplitCommand};
use super::disk::Disk;
use super::path;
use super::pattern::HOLE;
use super::plain::{Piece, Word, base_name};
use super::rules::Opinion;
use crabtalk_domain::Permission;
use crabtalk_domain::tool::Reach;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Most pieces of one word that are looked at; a long text as an argument has
/// few with a `/`.
const MAX_PIECES: usize = 200;

/// Most names that a glob is looked up among.
const MAX_NAMES: usize = 10_000;

/// Most folders that a command may be in after some `cd`.
const MAX_FOLDERS: usize = 8;

/// What separates paths within a word.
const SEPARATORS: [char; 17] = [
    '=', ':', ',', '@', ';', '|', '&', '<', '>', '(', ')', '\'', '"', '`', ' ', '\t', '\n',
];

/// Programs that only read the files they are given.
const READERS: [&str; 33] = [
    "cat",
    "head",
    "tail",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "wc",
    "ls",
    "less",
    "more",
    "sed",
    "awk",
    "diff",
    "cmp",
    "stat",
    "file",
    "sort",
    "uniq",
    "cut",
    "tr",
    "nl",
    "jq",
    "md5sum",
    "sha256sum",
    "cd",
    "test",
    "[",
    "python",
    "python3",
    "node",
    "ruby",
    "perl",
];

/// Beginnings of interpreters' names. They run what they read, so a device that
/// hands on what another command prints is no script that anybody judged.
const INTERPRETERS: [&str; 8] = [
    "python", "pypy", "node", "ruby", "perl", "php", "lua", "deno",
];

/// Programs that show no more of a folder above the home than names.
const HARMLESS_ABOVE: [&str; 13] = [
    "cd", "pushd", "ls", "pwd", "stat", "test", "[", "echo", "printf", "dirname", "basename",
    "realpath", "mkdir",
];

/// Programs that read everything below the folder they run in.
const WALKERS: [&str; 14] = [
    "rg", "ag", "ack", "fd", "fdfind", "find", "gfind", "grep", "egrep", "fgrep", "zgrep", "git",
    "ctags", "ugrep",
];

/// The places that the words of commands are looked up from.
pub(super) struct Places<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) reach: &'a dyn Fn(&Path) -> Reach,
    pub(super) user_home: Option<&'a Path>,
    /// Where the command may be.
    pub(super) folders: Vec<PathBuf>,
}

impl Places<'_> {
    /// Why a command must be asked about for what its words name, though a
    /// narrow rule allows it.
    pub(super) fn narrow(&mut self, words: &[Word]) -> Result<(), Opinion> {
        let name = words.first().map(Word::text).unwrap_or_default();
        let base = base_name(&name).to_owned();
        if WALKERS.contains(&base.as_str()) {
            let closed = |folder: &PathBuf| (self.reach)(folder) != Reach::Open;
            if self.folders.iter().any(closed) {
                return Err(ask(format!(
                    "`{base}` would look through CrabTalk's own home"
                )));
            }
        }
        for (at, word) in words.iter().enumerate() {
            let text = word.text();
            if text.contains('%') && text.to_ascii_lowercase().contains("file:") {
                return Err(ask("it cannot be told which file an address means"));
            }
            let user = User { base: &base, at };
            for folder in self.folders.clone() {
                let mut paths = self.meant(&text, &folder)?;
                if word.has_glob() {
                    paths.extend(self.expanded(word, &folder)?);
                }
                for path in paths {
                    self.path(&path, user)?;
                }
            }
        }
        self.moved(&base, words.get(1).map(Word::text).as_deref())
    }

    /// The same where every command is allowed: what surely lies in the home.
    pub(super) fn any(&mut self, script: &SplitCommand) -> Result<(), Opinion> {
        script.parts.iter().try_for_each(|part| self.part(part))
    }

    fn part(&mut self, part: &Part) -> Result<(), Opinion> {
        let base = part
            .words
            .first()
            .map_or("", |name| base_name(name))
            .to_owned();
        for word in &part.words {
            for folder in self.folders.clone() {
                for path in self.meant(word.split(HOLE).next().unwrap_or_default(), &folder)? {
                    if path::is_process(&path) {
                        return Err(process(&path));
                    }
                    let resolved = self.disk.resolve(&path);
                    if resolved.is_some_and(|path| (self.reach)(&path) == Reach::Closed) {
                        return Err(closed(&path));
                    }
                }
            }
        }
        self.moved(&base, part.words.get(1).map(String::as_str))?;
        part.inner
            .iter()
            .try_for_each(|inner| self.part(&inner.part))
    }

    /// Notes where a command may be after this one.
    fn moved(&mut self, base: &str, to: Option<&str>) -> Result<(), Opinion> {
        if !matches!(base, "cd" | "pushd") {
            return Ok(());
        }
        let to = to.unwrap_or("~");
        for folder in self.folders.clone() {
            let next = path::absolute(Path::new(to), &folder, self.user_home);
            // `..` is for the disk to follow.
            let next = if to.starts_with('~') {
                next
            } else {
                Some(folder.join(to))
            };
            let Some(next) = next.and_then(|next| self.disk.resolve(&next)) else {
                return Err(ask(format!("it cannot be told where `cd {to}` leads")));
            };
            if !self.folders.contains(&next) {
                self.folders.push(next);
            }
        }
        if self.folders.len() > MAX_FOLDERS {
            return Err(ask("it changes its folder too often"));
        }
        Ok(())
    }

    /// The paths that a word may stand for.
    fn meant(&self, word: &str, folder: &Path) -> Result<Vec<PathBuf>, Opinion> {
        // Pieces first: the shortest is what a refusal should name.
        let mut texts: Vec<&str> = word
            .split(SEPARATORS)
            .filter(|piece| piece.contains('/'))
            .collect();
        texts.push(word);
        if let Some(value) = word.strip_prefix('-').and_then(|w| w.get(1..)) {
            texts.push(value);
        }
        texts.extend(word.split_once('=').map(|(_, value)| value));
        texts.extend(word.split_once('@').map(|(_, value)| value));
        texts.extend(word.split_once(':').map(|(_, value)| value));
        texts.extend(word.find('/').map(|at| &word[at..]));
        texts.retain(|text| !text.is_empty());
        texts.dedup();
        if texts.len() > MAX_PIECES {
            return Err(ask("a word names too many paths"));
        }
        let path = |text: &&str| match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some(self.user_home?.join(rest.trim_start_matches('/')))
            }
            _ => Some(folder.join(text)),
        };
        Ok(texts.iter().filter_map(path).collect())
    }

    fn path(&self, path: &Path, user: User<'_>) -> Result<(), Opinion> {
        let lexical = path::absolute(path, Path::new("/"), None);
        if lexical
            .as_ref()
            .is_none_or(|path| path.starts_with("/proc"))
        {
            return Err(process(path));
        }
        let Some(resolved) = self.disk.resolve(path) else {
            return Err(ask(format!(
                "it cannot be told where {} leads",
                path.display()
            )));
        };
        let interprets = INTERPRETERS.iter().any(|name| user.base.starts_with(name));
        let is_device = |path: &Path| path.starts_with("/dev") || path.starts_with("/proc");
        if interprets && (is_device(&resolved) || lexical.as_deref().is_some_and(is_device)) {
            return Err(ask(format!(
                "`{}` would run what {} hands on",
                user.base,
                path.display()
            )));
        }
        match (self.reach)(&resolved) {
            Reach::Open => Ok(()),
            Reach::Readable if user.at == 0 || READERS.contains(&user.base) => Ok(()),
            Reach::Above if HARMLESS_ABOVE.contains(&user.base) => Ok(()),
            Reach::Above => Err(ask(format!(
                "{} holds CrabTalk's own home, which is closed",
                path.display()
            ))),
            Reach::Readable | Reach::Closed => Err(closed(path)),
        }
    }

    /// The paths that a glob yields now. Where the shell will yield others,
    /// somebody changed the folder meanwhile: that is the sandbox's business.
    fn expanded(&self, word: &Word, folder: &Path) -> Result<Vec<PathBuf>, Opinion> {
        let mut found = vec![PathBuf::from(folder)];
        let mut left = MAX_NAMES;
        for component in components(word) {
            let mut next = Vec::new();
            for base in found {
                if !component
                    .iter()
                    .any(|piece| matches!(piece, Piece::Glob(_)))
                {
                    let name: String = component.iter().map(text_of).collect();
                    next.push(base.join(if name.is_empty() { "/".into() } else { name }));
                    continue;
                }
                let names = self.disk.names(&base, left);
                let names =
                    names.ok_or_else(|| ask(format!("`{}` yields too much", word.text())))?;
                left = left.saturating_sub(names.len());
                let fits = names.into_iter().filter(|name| matches(&component, name));
                next.extend(fits.map(|name| base.join(name)));
            }
            found = next;
        }
        Ok(found)
    }
}

/// Who uses a path: a program, as the so-maniest of its words.
#[derive(Clone, Copy)]
struct User<'a> {
    base: &'a str,
    at: usize,
}

/// Something that a person has to look at.
fn ask(reason: impl Into<String>) -> Opinion {
    Opinion::new(Permission::Ask, reason)
}

/// What is closed, as it is to the file tools.
fn closed(path: &Path) -> Opinion {
    let reason = format!(
        "{} lies in CrabTalk's own home, which is closed",
        path.display()
    );
    Opinion::new(Permission::Deny, reason)
}

fn process(path: &Path) -> Opinion {
    ask(format!(
        "{} is another file for every process",
        path.display()
    ))
}

fn text_of(piece: &Piece) -> &str {
    match piece {
        Piece::Text(text) | Piece::Glob(text) => text,
    }
}

/// A word's pieces between slashes. An absolute path begins with an empty one.
fn components(word: &Word) -> Vec<Vec<Piece>> {
    let mut all = vec![Vec::new()];
    for piece in &word.pieces {
        let Piece::Text(text) = piece else {
            all.last_mut().expect("never empty").push(piece.clone());
            continue;
        };
        for (i, part) in text.split('/').enumerate() {
            if i > 0 {
                all.push(Vec::new());
            }
            if !part.is_empty() {
                all.last_mut()
                    .expect("never empty")
                    .push(Piece::Text(part.to_owned()));
            }
        }
    }
    let first = all.remove(0);
    let rest = all.into_iter().filter(|component| !component.is_empty());
    std::iter::once(first).chain(rest).collect()
}

/// Whether a name may be what a component with globs yields. A set counts as
/// any character, which only looks at more names than need be.
fn matches(component: &[Piece], name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return true;
    };
    let hidden = matches!(component.first(), Some(Piece::Glob(_)));
    if hidden && name.starts_with('.') {
        return false;
    }
    let mut pattern = String::new();
    for piece in component {
        match piece {
            // Stars that stand for themselves match more here, never less.
            Piece::Text(text) => pattern.push_str(text),
            Piece::Glob(glob) if glob == "*" => pattern.push('*'),
            Piece::Glob(_) => pattern.push('?'),
        }
    }
    crabtalk_domain::glob_matches(&pattern, name)
}
