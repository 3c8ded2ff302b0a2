//! What holds here between a sandboxed command and the machine, and what does
//! not, in words for people.

use super::Namespaces;
use std::fmt;

/// The walls that this machine has, found out by building them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walls {
    /// The version of landlock, of those that differ in what they close; absent
    /// where sandboxed commands do not run at all.
    pub landlock: Option<u8>,
    /// Who makes namespaces.
    pub namespaces: Namespaces,
    /// Why the better ways to namespaces do not work.
    pub why: Vec<String>,
}

/// Open without namespaces, whatever the version of landlock.
const WITHOUT_NAMESPACES: &str = "modes, times and attributes of files outside can be changed, other \
     processes are seen, and services of yours that listen on Unix sockets are reached";

/// Open besides, before version 6 of landlock.
const BEFORE_6: &str = "other processes of yours can be ended, and abstract sockets are reached";

impl Walls {
    /// Whether nothing outside is there for a sandboxed command.
    pub fn are_whole(&self) -> bool {
        self.landlock.is_some() && self.namespaces != Namespaces::None
    }

    /// What stays open here; nothing where all walls hold.
    pub fn open(&self) -> Option<String> {
        let Some(landlock) = self.landlock else {
            return Some("sandboxed commands do not run: the kernel has no landlock (6.2)".into());
        };
        if self.are_whole() {
            return None;
        }
        let mut open = vec![WITHOUT_NAMESPACES];
        if landlock < 6 {
            open.push(BEFORE_6);
        }
        Some(format!(
            "the sandbox has no namespaces here: {} ({})",
            open.join("; "),
            self.why.join("; ")
        ))
    }

    /// Why a command of `sandbox: strict` does not run here.
    pub fn refuse(&self) -> Option<String> {
        let open = self.open()?;
        Some(format!(
            "the command was not run, because this agent's sandbox is strict and {open}. Let the kernel give namespaces of users to ordinary users, or install bubblewrap; `sandbox: true` takes what there is"
        ))
    }
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(landlock) = self.landlock else {
            return write!(f, "none: no landlock");
        };
        match &self.namespaces {
            Namespaces::None => write!(f, "no namespaces")?,
            Namespaces::BuiltIn => write!(f, "namespaces")?,
            Namespaces::Bubblewrap(program) => {
                write!(f, "namespaces by {}", program.display())?;
            }
        }
        write!(f, ", landlock {landlock}, filter of system calls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls(landlock: Option<u8>, namespaces: Namespaces) -> Walls {
        Walls {
            landlock,
            namespaces,
            why: vec!["the kernel said no".into()],
        }
    }

    #[test]
    fn what_stays_open_is_said() {
        assert_eq!(walls(Some(6), Namespaces::BuiltIn).open(), None);
        let says = |walls: Walls, what: &str| {
            let open = walls.open().unwrap_or_default();
            assert!(open.contains(what), "{open}");
            assert!(walls.refuse().is_some_and(|r| r.contains(what)));
        };
        says(walls(Some(6), Namespaces::None), "the kernel said no");
        says(walls(Some(6), Namespaces::None), "Unix sockets");
        says(walls(Some(3), Namespaces::None), "can be ended");
        says(walls(None, Namespaces::BuiltIn), "do not run");
        let open = walls(Some(6), Namespaces::None).open().unwrap_or_default();
        assert!(!open.contains("can be ended"), "{open}");
    }
}
