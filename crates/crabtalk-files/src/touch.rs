//! Tells whoever watches a thread which path it is about to touch.
//!
//! Invariants: a thread that nobody watches is told nothing and asked nothing;
//! no link is followed, and no folder entered, before the watcher has agreed.

use crate::way::{PathStep, Way};
use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Knows which places do not answer.
pub trait Observer {
    /// Notes what is touched next.
    ///
    /// # Errors
    /// Why it had better not be touched.
    fn touches(&self, path: &Path) -> io::Result<()>;
}

thread_local! {
    static WATCH: RefCell<Option<Arc<dyn Observer>>> = const { RefCell::new(None) };
}

/// Works while somebody watches what this thread touches.
pub fn watched<T>(watch: Arc<dyn Observer>, work: impl FnOnce() -> T) -> T {
    struct Before(Option<Arc<dyn Observer>>);
    impl Drop for Before {
        fn drop(&mut self) {
            WATCH.set(self.0.take());
        }
    }
    let _before = Before(WATCH.replace(Some(watch)));
    work()
}

/// Says that a path is touched next. Touching one that lies where nothing answers
/// holds this thread, maybe for ever.
///
/// # Errors
/// That it lies there, where the thread is watched.
pub fn touch(path: &Path) -> io::Result<()> {
    match WATCH.with_borrow(Option::clone) {
        Some(watch) => watch.touches(path),
        None => Ok(()),
    }
}

/// Follows a path to where it leads, link by link, and asks before each step.
/// What is missing ends the way.
///
/// # Errors
/// Those of `before`, and a path that leads in a circle or is not absolute.
pub fn follow(path: &Path, before: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    if !path.is_absolute() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut way = Way::along(path);
    while let Some(step) = way.step() {
        if step == PathStep::Up {
            continue;
        }
        before(way.at())?;
        let Ok(found) = fs::symlink_metadata(way.at()) else {
            return Ok(());
        };
        if found.file_type().is_symlink() {
            way.follow_link()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Seen(Mutex<Vec<PathBuf>>);

    impl Observer for Seen {
        fn touches(&self, path: &Path) -> io::Result<()> {
            self.0.lock().unwrap().push(path.to_owned());
            match path.ends_with("dead") {
                true => Err(ErrorKind::TimedOut.into()),
                false => Ok(()),
            }
        }
    }

    #[test]
    fn a_thread_tells_what_it_touches_while_it_is_watched() {
        touch(Path::new("/dead")).unwrap();
        let seen = Arc::new(Seen::default());
        let refused = watched(seen.clone(), || {
            touch(Path::new("/alive")).unwrap();
            touch(Path::new("/dead"))
        });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TimedOut);
        touch(Path::new("/dead")).unwrap();
        let seen = seen.0.lock().unwrap();
        assert_eq!(*seen, [Path::new("/alive"), Path::new("/dead")]);
    }

    #[test]
    fn a_link_is_not_followed_to_where_nobody_may_go() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("mount/dead/below")).unwrap();
        symlink("mount/x/../dead", root.join("link")).unwrap();
        fs::create_dir(root.join("mount/x")).unwrap();
        let dead = root.join("mount/dead");
        let mut last = PathBuf::new();
        let mut before = |at: &Path| {
            last = at.to_owned();
            match at.starts_with(&dead) {
                true => Err(ErrorKind::TimedOut.into()),
                false => Ok(()),
            }
        };
        let refused = follow(&root.join("link/below"), &mut before);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(last, dead);
        follow(&root.join("mount/none/deeper"), &mut |_| Ok(())).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        follow(&root.join("loop"), &mut |_| Ok(())).unwrap_err();
    }
}
