//! Which policy a command gets: what of the disk is opened to it.
//!
//! Landlock only ever allows, so a folder that must stay closed is never below
//! one that is opened: the opened one is taken apart into its entries instead.

use super::lists::{SECRETS, SYSTEM, TOOLCHAINS};
use super::policy::{Link, Spot};
use super::{SandboxConfig, SandboxPolicy};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Entries into which opened folders are taken apart at most, so that a
/// working directory of a million files costs an error, not a minute.
const MAX_PATHS: usize = 10_000;

/// Links on one way at most, as the kernel has it.
const MAX_LINKS: usize = 40;

/// The places a policy is made from.
#[derive(Debug)]
pub struct Places<'a> {
    /// What the owner says of sandboxes.
    pub config: &'a SandboxConfig,
    /// The working folder, judged.
    pub cwd: &'a Spot,
    /// `$CRABTALK_HOME`.
    pub home: &'a Path,
    /// The home of the user whose daemon it is.
    pub user_home: Option<&'a Path>,
    /// The children's `PATH`, taken apart.
    pub programs: &'a [PathBuf],
    /// What of `home` this conversation may read.
    pub readable: &'a [PathBuf],
    /// Whether the machine allows namespaces.
    pub namespaces: bool,
}

impl Places<'_> {
    /// What a command may reach. Touches the disk.
    pub fn policy(&self) -> Result<SandboxPolicy, String> {
        let closed = self.closed();
        let mut links = Links::default();
        let mut write = Vec::new();
        open_judged(self.cwd.clone(), &closed, &mut write)?;
        for path in &self.config.write {
            links.note(path);
            open(path, &closed, &mut write)?;
        }
        let mut read = Vec::new();
        let toolchains = self
            .user_home
            .into_iter()
            .flat_map(|h| TOOLCHAINS.iter().map(|t| h.join(t)));
        let system = SYSTEM.iter().map(PathBuf::from).chain(toolchains);
        for path in system
            .chain(self.programs.iter().cloned())
            .chain(self.config.read.clone())
        {
            links.note(&path);
            open(&path, &closed, &mut read)?;
        }
        // Inside the closed home, hence not subject to it.
        read.extend(self.readable.iter().filter_map(|p| judge(p)));
        Ok(SandboxPolicy {
            cwd: self.cwd.clone(),
            write,
            read,
            links: links.into_list(),
            network: self.config.network,
            namespaces: self.namespaces,
            landlock: self.config.landlock,
        })
    }

    fn closed(&self) -> Vec<PathBuf> {
        let secrets = self
            .user_home
            .into_iter()
            .flat_map(|h| SECRETS.iter().map(|s| h.join(s)));
        std::iter::once(self.home.to_path_buf())
            .chain(secrets)
            .filter_map(|path| path.canonicalize().ok())
            .collect()
    }
}

/// Resolves a path and takes hold of what is there.
fn judge(path: &Path) -> Option<Spot> {
    Spot::judge(&path.canonicalize().ok()?).ok()
}

/// Adds what a path leads to, or what of that is not closed. What does not
/// exist opens nothing, and neither does what becomes a link at this moment.
fn open(path: &Path, closed: &[PathBuf], into: &mut Vec<Spot>) -> Result<(), String> {
    judge(path).map_or(Ok(()), |spot| open_judged(spot, closed, into))
}

/// As [`open`], of what was judged before: no link is followed any more.
fn open_judged(spot: Spot, closed: &[PathBuf], into: &mut Vec<Spot>) -> Result<(), String> {
    if closed.iter().any(|c| spot.path.starts_with(c)) {
        return Ok(());
    }
    if into.len() == MAX_PATHS {
        return Err(format!(
            "the sandbox would have to open more than {MAX_PATHS} entries one by one, because the working directory lies above something closed; choose one below"
        ));
    }
    if !closed.iter().any(|c| c.starts_with(&spot.path)) {
        into.push(spot);
        return Ok(());
    }
    // Something closed lies below: open its neighbours, not the folder. A link
    // among them leads to a place that is opened on its own, or not at all.
    for name in spot.names().unwrap_or_default() {
        if let Ok(entry) = Spot::judge(&spot.path.join(name)) {
            open_judged(entry, closed, into)?;
        }
    }
    Ok(())
}

/// The links on the ways to opened places. They carry no right: a file system
/// of the command's own has them so that `/bin/sh` is found where `/bin` is a
/// link.
#[derive(Default)]
struct Links(BTreeMap<PathBuf, PathBuf>);

impl Links {
    fn note(&mut self, path: &Path) {
        let mut ahead: VecDeque<OsString> = names(path).collect();
        let mut at = PathBuf::from("/");
        let mut followed = 0;
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            at.push(name);
            let Ok(target) = std::fs::read_link(&at) else {
                continue;
            };
            followed += 1;
            if followed > MAX_LINKS {
                return;
            }
            self.0.insert(at.clone(), target.clone());
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                ahead.push_front(name);
            }
        }
    }

    fn into_list(self) -> Vec<Link> {
        let link = |(path, target)| Link { path, target };
        self.0.into_iter().map(link).collect()
    }
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(cwd: &Path, home: &Path, user_home: &Path) -> SandboxPolicy {
        Places {
            config: &SandboxConfig::default(),
            cwd: &Spot::judge(cwd).expect("exists"),
            home,
            user_home: Some(user_home),
            programs: &[],
            readable: &[],
            namespaces: false,
        }
        .policy()
        .expect("makes sense")
    }

    #[test]
    fn a_folder_above_something_closed_is_taken_apart() {
        let dir = tempfile::tempdir().expect("creates");
        let user = dir.path().canonicalize().expect("exists");
        for folder in [
            ".crabtalk/config",
            ".ssh",
            "work",
            ".config/gh",
            ".config/git",
        ] {
            std::fs::create_dir_all(user.join(folder)).expect("creates");
        }
        let policy = policy(&user, &user.join(".crabtalk"), &user);
        let mut below: Vec<&Path> = policy
            .write
            .iter()
            .filter_map(|spot| spot.path.strip_prefix(&user).ok())
            .collect();
        below.sort();
        assert_eq!(below, [Path::new(".config/git"), Path::new("work")]);
    }

    #[test]
    fn a_working_directory_inside_the_home_opens_nothing() {
        let dir = tempfile::tempdir().expect("creates");
        let user = dir.path().canonicalize().expect("exists");
        let cwd = user.join(".crabtalk/config");
        std::fs::create_dir_all(&cwd).expect("creates");
        let policy = policy(&cwd, &user.join(".crabtalk"), &user);
        assert_eq!(policy.write, []);
    }

    #[test]
    fn links_on_the_way_are_noted_once_each() {
        let dir = tempfile::tempdir().expect("creates");
        let root = dir.path().canonicalize().expect("exists");
        std::fs::create_dir_all(root.join("real/below")).expect("creates");
        let link = |target: &Path, at: &str| {
            std::os::unix::fs::symlink(target, root.join(at)).expect("links");
        };
        link(Path::new("real"), "first");
        link(&root.join("first/below"), "second");
        link(Path::new("loop"), "loop");
        let mut links = Links::default();
        links.note(&root.join("second/file"));
        links.note(&root.join("loop"));
        let found: Vec<PathBuf> = links.into_list().into_iter().map(|l| l.path).collect();
        assert_eq!(
            found,
            [root.join("first"), root.join("loop"), root.join("second")]
        );
    }
}
