//! Builds the policy of one command: the visible paths and their rights.
//!
//! With namespaces, a closed path inside an open folder is covered by an empty
//! one. Landlock can only allow; without namespaces the entries of the open folder
//! are opened one by one instead.

use super::links::Links;
use super::lists::{MOVED, PRIVATE_CACHES, SECRETS, SHARED_CACHES, SYSTEM, TOOLCHAINS, words};
use super::policy::{Cache, Caches, MissingPart, OpenedPath, PinnedPath, Right};
use super::{SandboxConfig, SandboxPolicy, repository, secrets};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Maximum number of entries opened one by one, so that a working folder with a million files
/// causes an error instead of a long delay.
const MAX_PATHS: usize = 10_000;

/// The parts of a policy.
#[derive(Debug)]
pub struct PolicyBuilder<'a> {
    /// The owner's settings.
    pub config: &'a SandboxConfig,
    /// The judged working folder.
    pub cwd: &'a PinnedPath,
    /// Whether the command may write only to temporary folders.
    pub read_only: bool,
    /// Additional paths without links that this command may write to.
    pub write: &'a [PathBuf],
    /// Hosts that this command may reach.
    pub hosts: &'a [String],
    /// CrabTalk's home, `$CRABTALK_HOME`.
    pub home: &'a Path,
    /// The home of the user who runs the daemon.
    pub user_home: Option<&'a Path>,
    /// The command's environment, for its `PATH` and the locations of toolchains.
    pub environment: &'a [(OsString, OsString)],
    /// The paths in `home` that this conversation may read.
    pub readable: &'a [PathBuf],
    /// The folder of the project's private caches.
    pub caches: Option<&'a Path>,
    /// Files and folders of the program itself, such as its configuration:
    /// writable even if the secret lists close them. Needs namespaces.
    pub own: &'a [PathBuf],
    /// Whether namespaces work on this machine.
    pub namespaces: bool,
}

impl PolicyBuilder<'_> {
    /// Builds the policy. Reads the disk.
    ///
    /// # Errors
    /// Granted hosts need namespaces, which do not work on this machine; a granted or configured
    /// path is too wide; git's configuration cannot be protected; or secret
    /// files cannot all be hidden from a command with network.
    pub fn build(&self) -> Result<SandboxPolicy, String> {
        if !self.hosts.is_empty() && !self.namespaces {
            return Err("the command was not run: `hosts` needs network namespaces, which this machine does not allow (`crabtalk doctor` shows how to allow them). To ask for a run outside the sandbox, use `escalate` with a reason".into());
        }
        let mut places = Opening {
            closed: self.closed(),
            namespaces: self.namespaces,
            links: Links::default(),
            opened: Vec::new(),
        };
        let mut roots = self.open_folders(&mut places)?;
        self.open_tools(&mut places)?;
        // These paths are in the closed home.
        let readable = self.readable.iter().filter_map(|path| judge(path));
        places
            .opened
            .extend(readable.map(|spot| OpenedPath::new(spot, Right::Read)));
        let searched = roots.clone();
        self.open_own(&mut places, &mut roots)?;
        let hosts = self.granted_hosts();
        let (mut absent, mut caches, mut home) = (Vec::new(), None, None);
        for root in &roots {
            self.protect(root, &roots, &mut places, &mut absent)?;
        }
        if self.namespaces {
            places.hide(&roots);
            if !hosts.is_empty() {
                let cwd = std::iter::once(self.cwd.path.as_path());
                for folder in cwd.chain(searched.iter().map(PathBuf::as_path)) {
                    let found = secrets::in_project(folder)?;
                    places.add(found.iter().map(PathBuf::as_path), Right::Hidden);
                }
            }
            home = self.user_home.and_then(|h| h.canonicalize().ok());
            caches = self.caches(&mut places)?;
        } else {
            places.opened.retain(|opened| opened.right <= Right::Write);
        }
        Ok(SandboxPolicy {
            cwd: self.cwd.clone(),
            opened: places.opened,
            absent,
            home,
            caches,
            links: places.links.into_list(),
            hosts,
            namespaces: self.namespaces,
            landlock: self.config.landlock,
        })
    }

    /// The granted hosts; `network = true` grants every host.
    fn granted_hosts(&self) -> Vec<String> {
        if self.config.network && self.namespaces {
            return vec!["*".into()];
        }
        self.hosts.to_vec()
    }

    /// Opens the working folder and the granted and configured folders.
    /// Returns the writable folders.
    fn open_folders(&self, places: &mut Opening) -> Result<Vec<PathBuf>, String> {
        let right = if self.read_only {
            Right::Read
        } else {
            Right::Write
        };
        let mut roots = Vec::new();
        if self.is_home_or_above(&self.cwd.path) {
            // The home folder as a whole is readable and never writable.
            if let Some(home) = self.user_home {
                places.open(home, Right::Read)?;
            }
        } else {
            places.open_judged(self.cwd.clone(), right)?;
            roots.push(self.cwd.path.clone());
        }
        let mut writable = Vec::new();
        for path in &self.config.write {
            places.links.note(path);
            writable.extend(judge(path));
        }
        for path in self.write {
            // Granted paths have no links; a link that appeared since would lead to another
            // path.
            let spot = PinnedPath::judge(path);
            let failed = |e| format!("the sandbox cannot open {}: {e}", path.display());
            writable.push(spot.map_err(failed)?);
        }
        for spot in writable {
            if self.is_home_or_above(&spot.path) {
                return Err(format!(
                    "the sandbox cannot make {} writable, because it contains the home folder: name a folder in the home",
                    spot.path.display()
                ));
            }
            roots.push(spot.path.clone());
            places.open_judged(spot, right)?;
        }
        if self.read_only {
            roots.clear();
        }
        roots.retain(|root| places.is_open(root));
        Ok(roots)
    }

    /// Opens the program's own paths and adds them to the writable folders.
    fn open_own(&self, places: &mut Opening, roots: &mut Vec<PathBuf>) -> Result<(), String> {
        for path in self.own {
            places.links.note(path);
            let Some(spot) = judge(path) else {
                continue;
            };
            if self.is_home_or_above(&spot.path) || self.home.starts_with(&spot.path) {
                return Err(format!(
                    "the sandbox cannot make {} writable, because it contains a home folder: name a folder in the home",
                    spot.path.display()
                ));
            }
            places.closed.retain(|closed| *closed != spot.path);
            roots.push(spot.path.clone());
            places.opened.push(OpenedPath::new(spot, Right::Write));
        }
        Ok(())
    }

    /// Opens the system, toolchains, and the folders in `PATH` and the configuration.
    fn open_tools(&self, places: &mut Opening) -> Result<(), String> {
        let toolchains = words(TOOLCHAINS).filter_map(|entry| self.below_home(entry));
        let caches = words(SHARED_CACHES)
            .filter(|_| !self.namespaces)
            .filter_map(|entry| self.below_home(entry));
        let path = self.variable("PATH").unwrap_or(OsStr::new(""));
        let programs: Vec<PathBuf> = std::env::split_paths(path)
            .filter(|p| p.is_absolute() && !self.is_home_or_above(p))
            .collect();
        // Programs of a Python virtual environment need the folders next to them.
        let environments = programs.iter().filter_map(|folder| folder.parent());
        let environments = environments.filter(|folder| folder.join("pyvenv.cfg").is_file());
        let environments: Vec<PathBuf> = environments.map(Path::to_path_buf).collect();
        for path in words(SYSTEM)
            .map(PathBuf::from)
            .chain(toolchains)
            .chain(caches)
            .chain(programs)
            .chain(environments)
            .chain(self.config.read.iter().cloned())
        {
            places.links.note(&path);
            places.open(&path, Right::Read)?;
        }
        Ok(())
    }

    /// Protects git's configuration in a writable folder.
    fn protect(
        &self,
        root: &Path,
        roots: &[PathBuf],
        places: &mut Opening,
        absent: &mut Vec<MissingPart>,
    ) -> Result<(), String> {
        let user_home = self.user_home;
        let found = repository::protected(root, roots, user_home)?;
        for folder in found.folders {
            if !self.is_home_or_above(&folder) {
                places.open(&folder, Right::Write)?;
            }
        }
        if self.namespaces {
            places.add(found.pinned.iter().map(PathBuf::as_path), Right::Pinned);
            places.add(
                found.read_only.iter().map(PathBuf::as_path),
                Right::ReadOnly,
            );
            absent.extend(
                found
                    .absent
                    .into_iter()
                    .filter_map(|(folder, name, include)| {
                        Some(MissingPart {
                            path: folder.join(&name),
                            include,
                            folder: judge(&folder)?,
                            name,
                        })
                    }),
            );
        }
        Ok(())
    }

    /// The private caches, created if missing.
    fn caches(&self, places: &mut Opening) -> Result<Option<Caches>, String> {
        let Some(folder) = self.caches else {
            return Ok(None);
        };
        let make = |name: &str| {
            let made = folder.join(name);
            // The home belongs to its owner alone.
            let mut builder = std::fs::DirBuilder::new();
            let created = builder.recursive(true).mode(0o700).create(&made);
            created
                .and_then(|()| made.canonicalize())
                .map_err(|e| format!("cannot make the cache folder {}: {e}", made.display()))
        };
        let mut list: Vec<Cache> = Vec::new();
        for (entries, shared) in [(PRIVATE_CACHES, false), (SHARED_CACHES, true)] {
            for entry in words(entries) {
                let Some(path) = self.below_home(entry) else {
                    continue;
                };
                places.links.note(&path);
                // The target, if the path is a link.
                let path = path.canonicalize().unwrap_or(path);
                let lower = judge(&path).filter(|_| shared);
                if lower.is_none() && list.iter().any(|c| path.starts_with(&c.path)) {
                    continue;
                }
                let upper = make(&entry.trim_start_matches('.').replace('/', "-"))?;
                let upper = PinnedPath::judge(&upper).map_err(|e| e.to_string())?;
                list.push(Cache { path, lower, upper });
            }
        }
        let work = make("work")?;
        Ok(Some(Caches { work, list }))
    }

    /// Whether a right to write to this path would include the whole home.
    fn is_home_or_above(&self, path: &Path) -> bool {
        let home = self
            .user_home
            .map(|h| h.canonicalize().unwrap_or_else(|_| h.to_path_buf()));
        path == Path::new("/") || home.is_some_and(|h| h.starts_with(path))
    }

    /// A path below the home, or its replacement from a variable.
    fn below_home(&self, entry: &str) -> Option<PathBuf> {
        let moved = MOVED.iter().find_map(|(folder, variable)| {
            let rest = entry.strip_prefix(folder)?;
            let rest = rest.strip_prefix('/').or(rest.is_empty().then_some(""))?;
            let at = PathBuf::from(self.variable(variable)?);
            (at.is_absolute() && !self.is_home_or_above(&at)).then(|| at.join(rest))
        });
        moved.or_else(|| Some(self.user_home?.join(entry)))
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let known = self.environment.iter().rfind(|(known, _)| known == name);
        known.map(|(_, value)| value.as_os_str())
    }

    fn closed(&self) -> Vec<PathBuf> {
        let secrets = self
            .user_home
            .into_iter()
            .flat_map(|h| words(SECRETS).map(|s| h.join(s)));
        let mut closed: Vec<PathBuf> = std::iter::once(self.home.to_path_buf())
            .chain(secrets)
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        if rustix::process::geteuid().is_root() {
            closed.extend(secrets::of_root());
        }
        closed
    }
}

/// Resolves a path and records its identity.
fn judge(path: &Path) -> Option<PinnedPath> {
    PinnedPath::judge(&path.canonicalize().ok()?).ok()
}

impl OpenedPath {
    fn new(spot: PinnedPath, right: Right) -> Self {
        Self { spot, right }
    }
}

/// The paths opened so far.
struct Opening {
    closed: Vec<PathBuf>,
    namespaces: bool,
    links: Links,
    opened: Vec<OpenedPath>,
}

impl Opening {
    /// Opens a path. A missing path opens nothing, and neither does one that becomes a link
    /// at this moment.
    fn open(&mut self, path: &Path, right: Right) -> Result<(), String> {
        judge(path).map_or(Ok(()), |spot| self.open_judged(spot, right))
    }

    /// Opens a path that was judged before.
    fn open_judged(&mut self, spot: PinnedPath, right: Right) -> Result<(), String> {
        if self.closed.iter().any(|c| spot.path.starts_with(c)) {
            return Ok(());
        }
        if self.opened.len() == MAX_PATHS {
            return Err(format!(
                "the working directory contains protected files, so the sandbox would have to open more than {MAX_PATHS} entries one by one; choose a folder below it"
            ));
        }
        if self.namespaces || !self.closed.iter().any(|c| c.starts_with(&spot.path)) {
            self.opened.push(OpenedPath::new(spot, right));
            return Ok(());
        }
        // The target of a link among the entries is opened only if listed itself.
        for name in spot.names().unwrap_or_default() {
            if let Ok(entry) = PinnedPath::judge(&spot.path.join(name)) {
                self.open_judged(entry, right)?;
            }
        }
        Ok(())
    }

    /// Adds rights inside open folders, except for files that vanished.
    fn add<'p>(&mut self, paths: impl Iterator<Item = &'p Path>, right: Right) {
        let spots = paths.filter_map(|path| PinnedPath::judge(path).ok());
        self.opened
            .extend(spots.map(|spot| OpenedPath::new(spot, right)));
    }

    /// Hides closed paths inside open folders. In a writable folder the path to them is
    /// pinned, so that the command cannot move it.
    fn hide(&mut self, roots: &[PathBuf]) {
        let closed = std::mem::take(&mut self.closed);
        let inside: Vec<&Path> = closed
            .iter()
            .map(PathBuf::as_path)
            .filter(|path| self.is_open(path))
            .collect();
        for path in &inside {
            let pinned = repository::ancestors_within(path, roots);
            self.add(pinned.iter().map(PathBuf::as_path), Right::Pinned);
        }
        self.add(inside.into_iter(), Right::Hidden);
    }

    fn is_open(&self, path: &Path) -> bool {
        self.opened
            .iter()
            .any(|opened| path.starts_with(&opened.spot.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(cwd: &Path, user_home: &Path, namespaces: bool) -> SandboxPolicy {
        PolicyBuilder {
            config: &SandboxConfig::default(),
            cwd: &PinnedPath::judge(cwd).expect("exists"),
            read_only: false,
            write: &[],
            hosts: &[],
            home: &user_home.join(".crabtalk"),
            user_home: Some(user_home),
            environment: &[],
            readable: &[],
            own: &[],
            caches: None,
            namespaces,
        }
        .build()
        .expect("makes sense")
    }

    fn below(policy: &SandboxPolicy, root: &Path) -> Vec<(String, Right)> {
        let opened = policy.opened.iter();
        let mut below: Vec<_> = opened
            .filter_map(|o| {
                let path = o.spot.path.strip_prefix(root).ok()?;
                Some((path.display().to_string(), o.right))
            })
            .collect();
        below.sort();
        below
    }

    #[test]
    fn folder_above_secret_hides_it_or_is_taken_apart() {
        let dir = tempfile::tempdir().expect("creates");
        let user = dir.path().canonicalize().expect("exists");
        for folder in ["work/.crabtalk", "work/sub", ".ssh", "work/.git"] {
            std::fs::create_dir_all(user.join(folder)).expect("creates");
        }
        let named = |list: &[(&str, Right)]| -> Vec<(String, Right)> {
            let named = list
                .iter()
                .map(|(path, right)| ((*path).to_owned(), *right));
            named.collect()
        };
        // The home is readable, except for its secrets.
        let apart = below(&policy(&user, &user, false), &user);
        assert_eq!(apart, named(&[("work", Right::Read)]));
        let hidden = below(&policy(&user, &user, true), &user);
        let expected = [("", Right::Read), (".ssh", Right::Hidden)];
        assert_eq!(hidden, named(&expected));
        let work = below(&policy(&user.join("work"), &user, true), &user);
        let expected = [("work", Right::Write), ("work/.git", Right::Pinned)];
        assert_eq!(work, named(&expected));
        // A folder above the home is not opened.
        let above = below(&policy(user.parent().expect("has one"), &user, true), &user);
        assert_eq!(above, hidden);
    }

    #[test]
    fn crabtalk_home_as_working_folder_opens_nothing() {
        let dir = tempfile::tempdir().expect("creates");
        let user = dir.path().canonicalize().expect("exists");
        let cwd = user.join(".crabtalk/config");
        std::fs::create_dir_all(&cwd).expect("creates");
        for namespaces in [false, true] {
            assert_eq!(below(&policy(&cwd, &user, namespaces), &user), []);
        }
    }
}
