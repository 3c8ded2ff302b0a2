//! The files of a work tree of git, as they were before a command and after it.
//!
//! Invariants: the repository is only read, its index as a copy; git runs with
//! a folder of its own for its settings, so that nothing that a repository or
//! a person configured makes it run a program; whatever git names is checked
//! before it is opened; a look ends after a while, and so does what it reads.
//!
//! What git ignores is not looked at. What it converts between the repository
//! and the work tree (line ends, large files kept elsewhere) is told apart by
//! its size and not put back.

use super::found::{Found, Keep, MAX_FILE_BYTES, look, sha256, store};
use crabtalk_guardian::Children;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long git may look: longer than it takes in a tree of a hundred thousand
/// files, and a moment beside the command.
const LOOK_FOR: Duration = Duration::from_secs(10);

/// Bytes of what git lists: some ten thousand names.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// Bytes of the contents of one command's files from the repository.
const MAX_CONTENT_BYTES: u64 = 128 << 20;

/// Files that one command changes and that are noted: a checkout of another
/// branch is taken back by git.
const MAX_CHANGED: usize = 2_000;

/// Names in one call of git.
const NAMES_AT_ONCE: usize = 200;

/// Largest index that is copied: half a million files.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// Bytes of what stands uncommitted in a work tree and is kept while a command
/// runs.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// By how much the clock of files may lag behind that of the process.
const CLOCKS_APART: Duration = Duration::from_millis(50);

/// Largest of the small files of a repository that say where things lie.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// A work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) top: PathBuf,
    /// The folder with its index.
    git: PathBuf,
    /// The folder with the objects.
    common: PathBuf,
}

impl Tree {
    /// The work tree in which a folder lies. A person's home is none.
    pub(super) fn of(folder: &Path, user_home: Option<&Path>) -> Option<Self> {
        let text = |path: &Path| crabtalk_files::read_text(path, MAX_POINTER_BYTES).ok();
        let (top, git) = folder.ancestors().find_map(|top| {
            let git = top.join(".git");
            let git = match git.symlink_metadata().ok()?.is_dir() {
                true => git,
                false => top.join(text(&git)?.strip_prefix("gitdir:")?.trim()),
            };
            git.join("HEAD").exists().then(|| (top.to_owned(), git))
        })?;
        if user_home == Some(&*top) {
            return None;
        }
        let common = match text(&git.join("commondir")) {
            Some(common) => git.join(common.trim()),
            None => git.clone(),
        };
        Some(Self { top, git, common })
    }

    fn is_sha256(&self) -> bool {
        let config = crabtalk_files::read_text(&self.common.join("config"), MAX_POINTER_BYTES);
        let config = config.unwrap_or_default().to_ascii_lowercase();
        let squeezed: String = config.split_whitespace().collect();
        squeezed.contains("objectformat=sha256")
    }

    /// A path of the tree that git named, if it is one that may be opened.
    fn path(&self, name: &OsStr) -> Option<PathBuf> {
        let name = Path::new(name);
        let plain = |part: Component<'_>| match part {
            Component::Normal(part) => !part.eq_ignore_ascii_case(".git"),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => false,
        };
        let whole = !name.as_os_str().as_bytes().ends_with(b"/");
        let may = whole && name.components().next().is_some() && name.components().all(plain);
        may.then(|| self.top.join(name))
    }
}

/// Runs git beside a repository.
#[derive(Debug, Clone)]
pub(super) struct Git {
    pub(super) children: Children,
    /// Variables of a command: its `PATH` and `HOME` count.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Where git finds its settings, and nothing else.
    pub(super) folder: PathBuf,
}

impl Git {
    /// Makes the folder of settings for one kind of repository.
    fn settings(&self, sha256: bool) -> Result<PathBuf, String> {
        let (name, config) = match sha256 {
            false => ("git", "[core]\n\trepositoryformatversion = 0\n"),
            true => (
                "git-sha256",
                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
            ),
        };
        let folder = self.folder.join(name);
        if folder.join("HEAD").exists() {
            return Ok(folder);
        }
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            crabtalk_files::write(&path, text.as_bytes(), crabtalk_files::Existing::Replace)
        };
        let made = crabtalk_files::create_folder(&folder.join("objects"))
            .and_then(|()| crabtalk_files::create_folder(&folder.join("refs")))
            .and_then(|()| {
                let rest = "\tfsmonitor = false\n\tuntrackedCache = false\n\tquotePath = false\n";
                let core = config.replacen('\n', &format!("\n{rest}"), 1);
                write("config", &core)
            })
            // Bytes as they are, whatever the tree's own attributes say.
            .and_then(|()| {
                write(
                    "info/attributes",
                    "* -text -eol -filter -ident -working-tree-encoding\n",
                )
            })
            // Last: with it, the folder is whole.
            .and_then(|()| write("HEAD", "ref: refs/heads/none\n"));
        made.map(|()| folder)
            .map_err(|e| format!("cannot make git's settings: {e}"))
    }

    /// What git says.
    async fn run(
        &self,
        tree: &Tree,
        index: &Path,
        arguments: &[&OsStr],
        input: &[u8],
        most: u64,
    ) -> Result<Vec<u8>, String> {
        let (of, here) = (tree.clone(), self.clone());
        let settings = move || here.settings(of.is_sha256());
        let settings = tokio::task::spawn_blocking(settings).await;
        let settings = settings.map_err(|e| e.to_string())??;
        let mut command = tokio::process::Command::new("git");
        let inherited = ["PATH", "HOME", "XDG_CONFIG_HOME"];
        let environment = self.environment.iter();
        command
            .env_clear()
            .envs(
                environment
                    .filter(|(name, _)| inherited.iter().any(|i| name == i))
                    .map(|(name, value)| (name, value)),
            )
            .envs([
                ("LC_ALL", "C"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_SYSTEM", "/dev/null"),
                ("GIT_ATTR_NOSYSTEM", "1"),
                ("GIT_OPTIONAL_LOCKS", "0"),
                ("GIT_NO_LAZY_FETCH", "1"),
                ("GIT_NO_REPLACE_OBJECTS", "1"),
                ("GIT_LITERAL_PATHSPECS", "1"),
                ("GIT_TERMINAL_PROMPT", "0"),
            ])
            .env("GIT_DIR", settings)
            .env("GIT_WORK_TREE", &tree.top)
            .env("GIT_OBJECT_DIRECTORY", tree.common.join("objects"))
            .env("GIT_INDEX_FILE", index)
            .args(arguments)
            .current_dir(&tree.top)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let (mut child, _known) = self
            .children
            .spawn(&mut command)
            .map_err(|e| format!("git cannot be run: {e}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let told = async {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // One that ends early says so by how it ended.
                    let _ = stdin.write_all(input).await;
                }
            };
            let mut said = Vec::new();
            let hear = async {
                if let Some(stdout) = stdout {
                    // What is cut off fails below.
                    let _ = stdout.take(most + 1).read_to_end(&mut said).await;
                }
            };
            tokio::join!(feed, hear);
            if said.len() as u64 > most {
                return Err("there is more than is looked at".to_owned());
            }
            let ended = child.wait().await.map_err(|e| e.to_string())?;
            match ended.success() {
                true => Ok(said),
                false => Err(format!("git ended with {ended}")),
            }
        };
        tokio::time::timeout(LOOK_FOR, told)
            .await
            .unwrap_or_else(|_| Err(format!("git took more than {} s", LOOK_FOR.as_secs())))
    }

    /// What differs from an index, and what it does not have.
    async fn differs(&self, tree: &Tree, index: &Path) -> Result<Listed, String> {
        let mut arguments: Vec<OsString> = ["ls-files", "-z", "-t", "-m", "-d", "-o"]
            .map(OsString::from)
            .into();
        arguments.push("--exclude-standard".into());
        let exclude = tree.common.join("info/exclude");
        if exclude.is_file() {
            let mut argument = OsString::from("--exclude-from=");
            argument.push(exclude);
            arguments.push(argument);
        }
        let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        let said = self
            .run(tree, index, &arguments, b"", MAX_LIST_BYTES)
            .await?;
        let mut listed = Listed::default();
        for item in said.split(|byte| *byte == 0) {
            let (Some(tag), Some(name)) = (item.first(), item.get(2..)) else {
                continue;
            };
            let name = OsString::from_vec(name.to_vec());
            match tag {
                b'?' => listed.others.insert(name),
                _ => listed.tracked.insert(name),
            };
        }
        Ok(listed)
    }

    /// What an index has for some names.
    async fn staged(
        &self,
        tree: &Tree,
        index: &Path,
        names: &[&OsString],
    ) -> Result<BTreeMap<OsString, Staged>, String> {
        let mut staged = BTreeMap::new();
        for names in names.chunks(NAMES_AT_ONCE) {
            let mut arguments: Vec<&OsStr> = ["ls-files", "-z", "-s", "--debug", "--"]
                .map(OsStr::new)
                .into();
            arguments.extend(names.iter().map(|name| name.as_os_str()));
            let said = self
                .run(tree, index, &arguments, b"", MAX_LIST_BYTES)
                .await?;
            read_staged(&said, &mut staged);
        }
        Ok(staged)
    }

    /// Contents by the names of objects, in order; `None` for one that is not
    /// there.
    async fn contents(
        &self,
        tree: &Tree,
        index: &Path,
        objects: &[&str],
    ) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut input = objects.join("\n");
        input.push('\n');
        let arguments = ["cat-file", "--batch"].map(OsStr::new);
        let said = self
            .run(tree, index, &arguments, input.as_bytes(), MAX_CONTENT_BYTES)
            .await?;
        let mut rest = said.as_slice();
        let mut contents = Vec::new();
        for _ in objects {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (head, tail) = rest.split_at(end.ok_or("git said less than was asked")?);
            let head = String::from_utf8_lossy(head);
            let mut words = head.split(' ').skip(1);
            rest = &tail[1..];
            let (Some("blob"), Some(size)) = (words.next(), words.next()) else {
                contents.push(None);
                continue;
            };
            let size: usize = size.parse().map_err(|_| "git said no size")?;
            let content = rest.get(..size).ok_or("git said less than it announced")?;
            contents.push(Some(content.to_vec()));
            rest = rest
                .get(size + 1..)
                .ok_or("git said less than it announced")?;
        }
        Ok(contents)
    }
}

#[derive(Debug, Default)]
struct Listed {
    /// Files of the index that are not as it has them.
    tracked: BTreeSet<OsString>,
    /// Files that it does not have.
    others: BTreeSet<OsString>,
}

/// A file as an index has it.
#[derive(Debug)]
struct Staged {
    mode: String,
    object: String,
    /// Bytes that the file had in the work tree; 0 where git compares contents.
    size: u64,
}

/// Reads `MODE OBJECT STAGE<TAB>NAME<NUL>` with the lines about it that follow.
fn read_staged(said: &[u8], staged: &mut BTreeMap<OsString, Staged>) {
    let mut rest = said;
    while let Some(nul) = rest.iter().position(|byte| *byte == 0) {
        let (entry, tail) = rest.split_at(nul);
        let tail = &tail[1..];
        // Five lines, each with two columns of space before it.
        let about: usize = tail
            .split_inclusive(|byte| *byte == b'\n')
            .take_while(|line| line.starts_with(b"  "))
            .map(<[u8]>::len)
            .sum();
        let (about, after) = tail.split_at(about);
        rest = after;
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let head = String::from_utf8_lossy(&entry[..tab]);
        let mut words = head.split(' ');
        let (Some(mode), Some(object), Some("0")) = (words.next(), words.next(), words.next())
        else {
            // In the middle of a merge: it differs, and was looked at itself.
            continue;
        };
        let about = String::from_utf8_lossy(about);
        let size = about.split("size: ").nth(1);
        let size = size.and_then(|size| size.split_whitespace().next()?.parse().ok());
        let name = OsString::from_vec(entry[tab + 1..].to_vec());
        let is = Staged {
            mode: mode.to_owned(),
            object: object.to_owned(),
            size: size.unwrap_or(0),
        };
        staged.insert(name, is);
    }
}

/// A work tree as it was before a command.
#[derive(Debug)]
pub(super) struct Before {
    tree: Tree,
    /// A folder of the look's own: the index as it was, and contents.
    folder: PathBuf,
    at: SystemTime,
    /// What was not as the index has it, or not in it.
    differed: BTreeMap<OsString, Found>,
}

/// A file that a command changed.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) path: PathBuf,
    pub(super) before: Found,
    pub(super) after: Found,
}

/// Where contents of before lie.
fn contents(folder: &Path) -> PathBuf {
    folder.join("contents")
}

fn index(folder: &Path) -> PathBuf {
    folder.join("index")
}

/// Copies the index with its time, by which git tells which files it has to
/// compare.
fn copy_index(tree: &Tree, folder: &Path) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("cannot copy the index of git: {e}");
    crabtalk_files::create_folder(folder).map_err(|e| failed(&e))?;
    let path = tree.git.join("index");
    let Some(file) =
        crabtalk_files::if_there(crabtalk_files::open(&path)).map_err(|e| failed(&e))?
    else {
        // Nothing was added yet.
        return Ok(());
    };
    let bytes = crabtalk_files::read_open(&file, MAX_INDEX_BYTES).map_err(|e| failed(&e))?;
    let modified = file.metadata().and_then(|meta| meta.modified());
    let copied = modified.and_then(|modified| {
        std::fs::write(index(folder), bytes)?;
        std::fs::File::options()
            .write(true)
            .open(index(folder))?
            .set_modified(modified)
    });
    copied.map_err(|e| failed(&e))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| e.to_string())?
}

impl Before {
    /// Looks at a work tree; keeps what git does not have.
    pub(super) async fn look(git: &Git, tree: Tree, folder: PathBuf) -> Result<Self, String> {
        let at = SystemTime::now() - CLOCKS_APART;
        let (of, to) = (tree.clone(), folder.clone());
        blocking(move || copy_index(&of, &to)).await?;
        let listed = git.differs(&tree, &index(&folder)).await?;
        blocking(move || {
            let mut room = MAX_KEPT_BYTES;
            let kept = contents(&folder);
            let mut differed = BTreeMap::new();
            for name in listed.tracked.into_iter().chain(listed.others) {
                let Some(path) = tree.path(&name) else {
                    continue;
                };
                let found = look(&path, &mut Keep::In(&kept, &mut room))?;
                differed.insert(name, found);
            }
            Ok(Self {
                tree,
                folder,
                at,
                differed,
            })
        })
        .await
    }

    /// What is not as it was; contents go to `objects`.
    pub(super) async fn changed(self, git: &Git, objects: PathBuf) -> Result<Vec<Changed>, String> {
        let index = index(&self.folder);
        let listed = git.differs(&self.tree, &index).await?;
        let was_clean = |name: &&OsString| !self.differed.contains_key(*name);
        let clean: Vec<&OsString> = listed.tracked.iter().filter(was_clean).collect();
        let new: Vec<&OsString> = listed.others.iter().filter(was_clean).collect();
        if clean.len() + new.len() > MAX_CHANGED {
            return Err(format!(
                "the command changed {} files, and up to {MAX_CHANGED} are noted",
                clean.len() + new.len()
            ));
        }
        let staged = git.staged(&self.tree, &index, &clean).await?;
        let wanted: Vec<&Staged> = staged.values().filter(|one| one.is_file()).collect();
        let names: Vec<&str> = wanted.iter().map(|one| one.object.as_str()).collect();
        let contents = match names.is_empty() {
            true => Vec::new(),
            false => git.contents(&self.tree, &index, &names).await?,
        };
        let of_object: BTreeMap<String, Option<Vec<u8>>> = names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(contents)
            .collect();
        let clean: Vec<OsString> = clean.into_iter().cloned().collect();
        let new: Vec<OsString> = new.into_iter().cloned().collect();
        blocking(move || self.compare(&clean, &new, &staged, &of_object, &objects)).await
    }

    fn compare(
        &self,
        clean: &[OsString],
        new: &[OsString],
        staged: &BTreeMap<OsString, Staged>,
        of_object: &BTreeMap<String, Option<Vec<u8>>>,
        objects: &Path,
    ) -> Result<Vec<Changed>, String> {
        let mut befores: Vec<(&OsString, Found)> = Vec::new();
        for name in clean {
            if let Some(staged) = staged.get(name) {
                let content = of_object.get(&staged.object).and_then(Option::as_deref);
                befores.push((name, staged.found(content, objects)?));
            }
        }
        for name in new {
            let Some(path) = self.tree.path(name) else {
                continue;
            };
            // It was there and ignored, if it is older than the command.
            let older = path.symlink_metadata().is_ok_and(|meta| {
                let changed = {
                    use std::os::unix::fs::MetadataExt;
                    let secs = u64::try_from(meta.ctime()).unwrap_or(0);
                    let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or(0);
                    SystemTime::UNIX_EPOCH + Duration::new(secs, nanos)
                };
                changed < self.at || meta.created().is_ok_and(|created| created < self.at)
            });
            let before = match older {
                true => Found::Unkept {
                    why: "git ignored it before the command".to_owned(),
                    stamp: "ignored".to_owned(),
                },
                false => Found::Nothing,
            };
            befores.push((name, before));
        }
        let kept = contents(&self.folder);
        let mut changed = Vec::new();
        let known = self
            .differed
            .iter()
            .map(|(name, found)| (name, found.clone()));
        for (name, before) in known.chain(befores) {
            let Some(path) = self.tree.path(name) else {
                continue;
            };
            let now = look(&path, &mut Keep::Nowhere)?;
            if now.is(&before) {
                continue;
            }
            if let Found::File { sha256, .. } = &before {
                take_over(&kept, objects, sha256)?;
            }
            let mut room = MAX_FILE_BYTES;
            let after = look(&path, &mut Keep::In(objects, &mut room))?;
            changed.push(Changed {
                path,
                before,
                after,
            });
        }
        Ok(changed)
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // What stays is swept with its run.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Takes a content to where it stays, unless it is there.
fn take_over(kept: &Path, objects: &Path, sha256: &str) -> Result<(), String> {
    let (from, to) = (kept.join(sha256), objects.join(sha256));
    if to.exists() || !from.exists() {
        return Ok(());
    }
    crabtalk_files::create_folder(objects)
        .and_then(|()| std::fs::rename(&from, &to))
        .map_err(|e| format!("cannot keep a content: {e}"))
}

impl Staged {
    fn is_file(&self) -> bool {
        matches!(self.mode.as_str(), "100644" | "100755" | "120000")
    }

    /// What the work tree had, by what the repository has.
    fn found(&self, content: Option<&[u8]>, objects: &Path) -> Result<Found, String> {
        let lost = |why: &str| Found::Unkept {
            why: why.to_owned(),
            stamp: self.object.clone(),
        };
        let Some(content) = content.filter(|_| self.is_file()) else {
            return Ok(lost("the repository does not have what it was"));
        };
        if self.mode == "120000" {
            return Ok(Found::Link {
                target: super::name::Name::from_bytes(content.to_vec()),
            });
        }
        let size = content.len() as u64;
        if self.size != 0 && self.size != size & u64::from(u32::MAX) {
            return Ok(lost("git converts what it has of it"));
        }
        if size > MAX_FILE_BYTES {
            return Ok(lost("it was too large to be kept"));
        }
        let sha256 = sha256(content);
        store(objects, &sha256, content)?;
        Ok(Found::File {
            sha256,
            size,
            mode: if self.mode == "100755" { 0o755 } else { 0o644 },
            exact: false,
        })
    }
}
