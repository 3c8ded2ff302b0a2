//! The time zone of this machine, from the one file that describes it.
//!
//! Invariant: it is the zone that `TimeZone::try_system` finds. That one first
//! makes a list of all zones which the system has, six hundred files, and keeps
//! it; a daemon that asks for one zone at each start has no use for that.

use crate::read;
use jiff::tz::TimeZone;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Which zone the machine is in.
const LOCAL: &str = "/etc/localtime";

/// Where the system has its zones, in a folder of this name.
const ZONES: &str = "zoneinfo/";

/// The usual such folder.
const FOLDER: &str = "/usr/share/zoneinfo";

/// Largest description of a zone: those that there are have some kilobytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// How long a zone is taken for the machine's without another look. Whoever
/// travels finds it right a moment later.
const KEPT_FOR: Duration = Duration::from_secs(5 * 60);

static KEPT: Mutex<Option<(Instant, TimeZone)>> = Mutex::new(None);

/// The zone of this process: what `TZ` says, else the machine's, else UTC.
#[must_use]
pub fn local_zone() -> TimeZone {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((at, zone)) = kept
        && at.elapsed() < KEPT_FOR
    {
        return zone;
    }
    let zone = find(env::var_os("TZ"), Path::new(LOCAL), Path::new(FOLDER))
        .or_else(|| TimeZone::try_system().ok())
        .unwrap_or(TimeZone::UTC);
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), zone.clone()));
    zone
}

/// The zone where it can be told by one file; `None` leaves it to the library.
fn find(tz: Option<OsString>, local: &Path, folder: &Path) -> Option<TimeZone> {
    let (name, file) = match tz {
        Some(tz) => {
            let name = plain(tz.to_str()?)?.to_owned();
            let file = folder.join(&name);
            (name, file)
        }
        None => {
            let target = local.read_link().ok()?;
            let (_, name) = target.to_str()?.rsplit_once(ZONES)?;
            (plain(name)?.to_owned(), PathBuf::from(local))
        }
    };
    let bytes = read(&file, MAX_BYTES).ok()?;
    TimeZone::tzif(&name, &bytes).ok()
}

/// A name as zones have it, and nothing that leads elsewhere.
fn plain(name: &str) -> Option<&str> {
    let is_plain = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    name.split('/').all(is_plain).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A folder of zones with one of them, and a link to it.
    fn world() -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
        let berlin = fs::read(Path::new(FOLDER).join("Europe/Berlin")).ok()?;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("zoneinfo");
        fs::create_dir_all(folder.join("Europe")).unwrap();
        fs::write(folder.join("Europe/Berlin"), berlin).unwrap();
        fs::write(folder.join("Europe/Broken"), "no zone").unwrap();
        let local = root.path().join("localtime");
        symlink(folder.join("Europe/Berlin"), &local).unwrap();
        Some((root, folder, local))
    }

    #[test]
    fn the_zone_is_the_one_that_the_link_or_the_variable_names() {
        let Some((_root, folder, local)) = world() else {
            return;
        };
        let now = Timestamp::now();
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        for tz in [None, Some("Europe/Berlin")] {
            let zone = find(tz.map(OsString::from), &local, &folder).unwrap();
            assert_eq!(zone.iana_name(), Some("Europe/Berlin"), "{tz:?}");
            for months in 0..12 {
                let at = now + Duration::from_secs(months * 30 * 86_400);
                assert_eq!(zone.to_offset(at), berlin.to_offset(at), "{at}");
            }
        }
    }

    #[test]
    fn whatever_is_no_plain_name_of_a_zone_is_left_to_the_library() {
        let Some((_root, folder, local)) = world() else {
            return;
        };
        for tz in [
            "",
            "CET-1CEST,M3.5.0/2,M10.5.0/3",
            ":Europe/Berlin",
            "/etc/localtime",
            "../Europe/Berlin",
            "Europe/../Europe/Berlin",
            "Europe/Broken",
            "Nowhere/Else",
            "Europe",
        ] {
            let found = find(Some(tz.into()), &local, &folder);
            assert!(found.is_none(), "{tz}: {found:?}");
        }
        assert!(find(None, &folder, &folder).is_none(), "no link");
        let elsewhere = folder.join("other");
        symlink(folder.join("Europe/Berlin/x"), &elsewhere).unwrap();
        assert!(find(None, &elsewhere, &folder).is_none(), "a broken link");
    }
}
