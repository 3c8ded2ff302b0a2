//! Matches path patterns against resolved, absolute paths.
//!
//! Callers resolve the links of paths and folders first. Patterns of rules that ask or
//! deny also match the targets of links in the pattern's folders.

use super::disk::Disk;
use super::patterns;
use std::path::{Component, Path, PathBuf};

/// The resolved folders to which relative patterns and `~` refer.
#[derive(Debug, Clone, Copy)]
pub struct Bases<'a> {
    /// The working folder.
    pub cwd: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
}

/// Whether the pattern of a rule matches an absolute path. Relative patterns refer to the
/// working folder, and `~/` to the home. A path that is not UTF-8 matches by its lossy
/// text.
pub fn matches(pattern: &str, path: &Path, bases: Bases<'_>) -> bool {
    let Some(full) = absolute(Path::new(pattern.trim()), bases.cwd, bases.home) else {
        return false;
    };
    patterns::path(&full.to_string_lossy(), path)
}

/// Whether the pattern matches after the links of the folders before its first wildcard
/// are resolved.
pub fn leads_to(pattern: &str, path: &Path, bases: Bases<'_>, disk: &dyn Disk) -> bool {
    let Some(full) = absolute(Path::new(pattern.trim()), bases.cwd, bases.home) else {
        return false;
    };
    let is_sure = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?']);
    let sure: PathBuf = full.components().take_while(is_sure).collect();
    let Some(resolved) = disk.resolve(&sure).filter(|resolved| *resolved != sure) else {
        return false;
    };
    let rest = full.strip_prefix(&sure).unwrap_or(Path::new(""));
    let full = if rest.as_os_str().is_empty() {
        resolved
    } else {
        resolved.join(rest)
    };
    patterns::path(&full.to_string_lossy(), path)
}

/// Makes a path absolute without access to the disk: prepends `cwd` to a relative path,
/// replaces `~` by `home`, and removes `.` and `..`. `None` if `home` is needed and
/// unknown.
pub fn absolute(path: &Path, cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let joined = match path.strip_prefix("~") {
        Ok(rest) => home?.join(rest),
        Err(_) => cwd.join(path),
    };
    let mut clean = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    Some(clean)
}

/// Whether `path` is below `root`, where `root` is neither the home, a folder above it,
/// nor `/`: these contain all secrets of the user.
pub fn is_below(path: &Path, root: &Path, home: Option<&Path>) -> bool {
    let too_wide = root.parent().is_none()
        || !root.is_absolute()
        || home.is_some_and(|home| home.starts_with(root));
    !too_wide && path.starts_with(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_relative_to_the_working_folder() {
        let (cwd, home) = (Path::new("/w/p"), Some(Path::new("/home/u")));
        for (pattern, path, want) in [
            ("src/*", "/w/p/src/a", true),
            ("./src/*", "/w/p/src/a", true),
            ("src/*", "/w/p/src/a/b", false),
            ("src/**", "/w/p/src/a/b", true),
            ("**", "/w/p/x/y", true),
            ("**", "/w/q", false),
            ("../q/*", "/w/q/x", true),
            ("~/notes/**", "/home/u/notes/a/b", true),
            ("~/notes/**", "/w/p/~/notes/a", false),
            ("/etc/**", "/etc/passwd", true),
            ("etc/**", "/etc/passwd", false),
            ("*.rs", "/w/p/a.rs", true),
            ("*.rs", "/w/p/b/a.rs", false),
        ] {
            assert_eq!(
                matches(pattern, Path::new(path), Bases { cwd, home }),
                want,
                "{pattern} {path}"
            );
        }
        assert!(!matches("~/x", Path::new("/x"), Bases { cwd, home: None }));
    }

    #[test]
    fn home_and_folders_above_are_no_work_folders() {
        let home = Some(Path::new("/home/u"));
        for (root, path, want) in [
            ("/home/u/work", "/home/u/work/a", true),
            ("/home/u/work", "/home/u/worker/a", false),
            ("/home/u", "/home/u/a", false),
            ("/home", "/home/u/a", false),
            ("/", "/a", false),
            ("work", "work/a", false),
            ("/srv", "/srv/a", true),
        ] {
            assert_eq!(
                is_below(Path::new(path), Path::new(root), home),
                want,
                "{root}"
            );
        }
    }
}
