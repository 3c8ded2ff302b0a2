//! Runs git on a work tree with separate settings.

use super::Tree;
use crabtalk_guardian::Children;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Timeout of git: longer than it takes for a hundred thousand files.
const LOOK_FOR: Duration = Duration::from_secs(10);

/// Maximum bytes of a list from git: some ten thousand names.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// Maximum bytes of contents read from the repository for one command.
const MAX_CONTENT_BYTES: u64 = 128 << 20;

/// Maximum number of names per call of git.
const NAMES_AT_ONCE: usize = 200;

/// Runs git on a repository.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    pub(crate) children: Children,
    /// The variables of a command, of which `PATH` and `HOME` are used.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The folder with git's settings and nothing else.
    pub(crate) folder: PathBuf,
}

impl Git {
    /// Creates the settings folder for an object format.
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
            // Unconverted bytes, regardless of the tree's attributes.
            .and_then(|()| {
                write(
                    "info/attributes",
                    "* -text -eol -filter -ident -working-tree-encoding\n",
                )
            })
            // Written last: its presence shows that the folder is complete.
            .and_then(|()| write("HEAD", "ref: refs/heads/none\n"));
        made.map(|()| folder)
            .map_err(|e| format!("cannot make git's settings: {e}"))
    }

    /// Runs git and returns its output.
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
                    // The exit status reports an early end.
                    let _ = stdin.write_all(input).await;
                }
            };
            let mut said = Vec::new();
            let hear = async {
                if let Some(stdout) = stdout {
                    // Output above the limit fails below.
                    let _ = stdout.take(most + 1).read_to_end(&mut said).await;
                }
            };
            tokio::join!(feed, hear);
            if said.len() as u64 > most {
                return Err("git listed too many files".to_owned());
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

    /// The files that differ from an index or are not in it.
    pub(super) async fn differs(&self, tree: &Tree, index: &Path) -> Result<Listed, String> {
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

    /// The entries of an index for some names.
    pub(super) async fn staged(
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

    /// Reads contents by object name, in order; `None` for a missing
    /// object.
    pub(super) async fn contents(
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
pub(super) struct Listed {
    /// Files that differ from the index.
    pub(super) tracked: BTreeSet<OsString>,
    /// Files that are not in the index.
    pub(super) others: BTreeSet<OsString>,
}

/// An entry of the index.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) mode: String,
    pub(super) object: String,
    /// The size of the file in the work tree; 0 if git compares contents.
    pub(super) size: u64,
}

/// Parses `MODE OBJECT STAGE<TAB>NAME<NUL>` and the lines about it that follow.
fn read_staged(said: &[u8], staged: &mut BTreeMap<OsString, Staged>) {
    let mut rest = said;
    while let Some(nul) = rest.iter().position(|byte| *byte == 0) {
        let (entry, tail) = rest.split_at(nul);
        let tail = &tail[1..];
        // Five lines, each indented by two spaces.
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
            // During a merge the file differs, and is examined separately.
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
