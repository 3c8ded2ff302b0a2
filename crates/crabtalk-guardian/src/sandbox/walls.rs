//! The walls between a sandboxed command and the machine, with a description.

use std::fmt;

/// The walls of this machine, as found by a test command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walls {
    /// The version of landlock; `None` if sandboxed commands cannot run.
    pub landlock: Option<u8>,
    /// Whether commands run in namespaces.
    pub namespaces: bool,
    /// The reason why namespaces do not work.
    pub why: Option<String>,
}

/// Gaps without namespaces, with any landlock version.
const WITHOUT_NAMESPACES: &str = "commands can change git's configuration and hooks in the folder \
                                  and modes and times of files outside, see other processes, and \
                                  reach Unix sockets of your services";

/// Additional gaps before version 6 of landlock.
const BEFORE_6: &str = "commands can end your other processes and reach abstract sockets";

impl Walls {
    /// Whether namespaces, landlock and the system call filter all work.
    pub fn are_complete(&self) -> bool {
        self.landlock.is_some() && self.namespaces
    }

    /// Describes the gaps and a remedy; `None` if the walls are complete.
    pub fn open(&self) -> Option<String> {
        let Some(landlock) = self.landlock else {
            return Some(
                "sandboxed commands do not run: the kernel has no landlock (Linux 6.2 or later)"
                    .into(),
            );
        };
        if self.are_complete() {
            return None;
        }
        let mut open = WITHOUT_NAMESPACES.to_owned();
        if landlock < 6 {
            open = format!("{open}; {BEFORE_6}");
        }
        let why = self.why.as_deref().unwrap_or("switched off");
        Some(format!(
            "the sandbox has no namespaces here ({why}): {open}. {}",
            remedy()
        ))
    }
}

/// How to allow namespaces for ordinary users on this machine.
fn remedy() -> &'static str {
    let is = |setting: &str, value: &str| {
        std::fs::read_to_string(format!("/proc/sys/{setting}")).is_ok_and(|v| v.trim() == value)
    };
    if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "Add an AppArmor profile with the rule `userns,` for the crabtalk binary"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "Set `sysctl kernel.unprivileged_userns_clone=1`"
    } else if is("user/max_user_namespaces", "0") {
        "Set `sysctl user.max_user_namespaces` above 0"
    } else {
        "In a container, allow `unshare` and `mount` in its seccomp and AppArmor profile, and unmask /proc"
    }
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(landlock) = self.landlock else {
            return write!(f, "none: no landlock");
        };
        let namespaces = if self.namespaces {
            "namespaces"
        } else {
            "no namespaces"
        };
        write!(f, "{namespaces}, landlock {landlock}, system call filter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_describes_missing_walls() {
        let open = |landlock, namespaces| {
            let why = Some("the kernel said no".to_owned());
            let walls = Walls {
                landlock,
                namespaces,
                why,
            };
            walls.open()
        };
        assert_eq!(open(Some(6), true), None);
        for (landlock, namespaces, says) in [
            (Some(6), false, "the kernel said no"),
            (Some(6), false, "Unix sockets"),
            (Some(3), false, "abstract sockets"),
            (None, true, "do not run"),
        ] {
            let open = open(landlock, namespaces).unwrap_or_default();
            assert!(open.contains(says), "{open}");
        }
        let open = open(Some(6), false).unwrap_or_default();
        assert!(!open.contains("abstract sockets"), "{open}");
    }
}
