//! A project's instructions for agents (MEM-4).
//!
//! Invariants: no file of a folder is read unless an owner trusts the folder,
//! and no file outside of the checked folder is read. Omitted parts are
//! reported.

use crate::Warning;
use crabtalk_domain::tags;
use std::path::{Path, PathBuf};

/// Names of instruction files, in the order of reading.
const FILES: [&str; 2] = ["AGENTS.md", "Crab.md"];
/// Largest file; longer ones are documentation, not instructions.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Maximum bytes of all files together, nearest folders first: every request of the run
/// contains them.
const MAX_TOTAL_BYTES: usize = 128 * 1024;
/// Maximum number of parent folders to search.
const MAX_FOLDERS: usize = 64;

/// Whether an owner trusts a folder or one above it.
pub type Trusts<'a> = &'a dyn Fn(&Path) -> bool;

/// The text of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The file.
    pub file: PathBuf,
    /// The text of the file.
    pub content: String,
}

/// The instructions of a project for agents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Project {
    /// The instructions of trusted folders, outermost first.
    pub instructions: Vec<Instruction>,
    /// Untrusted folders with instructions, outermost first, to ask the user about or to
    /// report.
    pub untrusted: Vec<PathBuf>,
    /// Skipped files, with the reasons.
    pub warnings: Vec<Warning>,
}

impl Project {
    /// Collects instructions from `cwd` upwards, ending below `home` and `/`. Blocks.
    pub fn collect(cwd: &Path, home: &Path, trusts: Trusts<'_>) -> Self {
        let mut project = Self::default();
        let Ok(cwd) = cwd.canonicalize() else {
            return project;
        };
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let mut left = MAX_TOTAL_BYTES;
        for folder in folders(&cwd, &home) {
            let files: Vec<PathBuf> = FILES
                .iter()
                .map(|name| folder.join(name))
                .filter(|file| is_there(file))
                .collect();
            if files.is_empty() {
                continue;
            }
            if !trusts(folder) {
                project.untrusted.push(folder.to_owned());
                continue;
            }
            for file in files.into_iter().rev() {
                project.read(folder, file, trusts, &mut left);
            }
        }
        project.instructions.reverse();
        project.untrusted.reverse();
        project
    }

    /// The instructions as one block for a run; empty if there are none.
    pub fn block(&self) -> String {
        let mut out = String::new();
        for Instruction { file, content } in &self.instructions {
            let file = tags::attribute(&file.display().to_string());
            let content = tags::escape(content.trim());
            out.push_str(&format!(
                "<project file=\"{file}\">\n{content}\n</project>\n"
            ));
        }
        out
    }

    fn read(&mut self, folder: &Path, file: PathBuf, trusts: Trusts<'_>, left: &mut usize) {
        match content(folder, &file, trusts) {
            Ok(content) if content.trim().is_empty() => {}
            Ok(content) if content.len() > *left => self.warn(
                file,
                format!("was skipped: the instructions have more than {MAX_TOTAL_BYTES} bytes"),
            ),
            Ok(content) => {
                *left -= content.len();
                self.instructions.push(Instruction { file, content });
            }
            Err(reason) => self.warn(file, reason),
        }
    }

    fn warn(&mut self, file: PathBuf, reason: String) {
        self.warnings.push(Warning { file, reason });
    }
}

/// The folders of a project, innermost first. The home and the root do not count, unless
/// the run's folder is one of them.
fn folders<'a>(cwd: &'a Path, home: &'a Path) -> impl Iterator<Item = &'a Path> {
    cwd.ancestors()
        .enumerate()
        .take_while(move |(at, folder)| *at == 0 || (*folder != home && folder.parent().is_some()))
        .map(|(_, folder)| folder)
        .take(MAX_FOLDERS)
}

fn is_there(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

/// Reads a file, or the target of a link within the trusted folder.
fn content(folder: &Path, file: &Path, trusts: Trusts<'_>) -> Result<String, String> {
    let target = file
        .canonicalize()
        .map_err(|e| format!("cannot be read: {e}"))?;
    let within = target
        .parent()
        .is_some_and(|at| at.starts_with(folder) || trusts(at));
    if !within {
        return Err(format!(
            "links to {}, which is outside the trusted folders",
            target.display()
        ));
    }
    crabtalk_files::read_text(&target, MAX_FILE_BYTES).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Tree {
        root: tempfile::TempDir,
        trusted: Vec<PathBuf>,
    }

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let root = tempfile::tempdir().unwrap();
            for (file, text) in files {
                let file = root.path().join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            fs::create_dir_all(root.path().join("home/repo/src")).unwrap();
            Self {
                root,
                trusted: Vec::new(),
            }
        }

        fn trust(mut self, folder: &str) -> Self {
            let folder = self.root.path().join(folder).canonicalize().unwrap();
            self.trusted.push(folder);
            self
        }

        fn collect(&self, cwd: &str) -> Project {
            let home = self.root.path().join("home");
            let trusts = |at: &Path| self.trusted.iter().any(|folder| at.starts_with(folder));
            Project::collect(&self.root.path().join(cwd), &home, &trusts)
        }

        fn names(&self, files: impl Iterator<Item = PathBuf>) -> Vec<String> {
            let root = self.root.path().canonicalize().unwrap();
            files
                .map(|f| f.strip_prefix(&root).unwrap().display().to_string())
                .collect()
        }

        fn read(&self, project: &Project) -> Vec<String> {
            self.names(project.instructions.iter().map(|i| i.file.clone()))
        }
    }

    #[test]
    fn trusted_folders_speak_outermost_first() {
        let tree = Tree::new(&[
            ("AGENTS.md", "outside"),
            ("home/AGENTS.md", "home"),
            ("home/repo/AGENTS.md", "outer"),
            ("home/repo/Crab.md", "crab"),
            ("home/repo/src/AGENTS.md", "inner"),
        ])
        .trust("home/repo");
        let project = tree.collect("home/repo/src");
        let want = [
            "home/repo/AGENTS.md",
            "home/repo/Crab.md",
            "home/repo/src/AGENTS.md",
        ];
        assert_eq!(tree.read(&project), want);
        assert!(project.untrusted.is_empty() && project.warnings.is_empty());
        assert_eq!(project.block().matches("<project file=").count(), 3);
    }

    #[test]
    fn untrusted_folders_are_named_and_not_read() {
        let tree = Tree::new(&[("home/repo/AGENTS.md", "x"), ("home/repo/src/Crab.md", "y")]);
        let project = tree.collect("home/repo/src");
        assert!(project.instructions.is_empty() && project.block().is_empty());
        assert_eq!(
            tree.names(project.untrusted.into_iter()),
            ["home/repo", "home/repo/src"]
        );
        let inner = tree.trust("home/repo/src").collect("home/repo/src");
        assert_eq!((inner.instructions.len(), inner.untrusted.len()), (1, 1));
    }

    #[test]
    fn a_run_at_home_may_have_instructions() {
        let tree = Tree::new(&[("AGENTS.md", "root"), ("home/AGENTS.md", "home")]).trust("home");
        assert_eq!(tree.read(&tree.collect("home")), ["home/AGENTS.md"]);
    }

    #[test]
    fn links_out_and_large_files_are_named() {
        use std::os::unix::fs::symlink;
        let tree = Tree::new(&[
            ("secret", "s"),
            ("home/repo/docs/real.md", "linked"),
            ("home/repo/src/AGENTS.md", &"x".repeat(65 * 1024)),
        ])
        .trust("home/repo");
        let repo = tree.root.path().join("home/repo");
        symlink(tree.root.path().join("secret"), repo.join("Crab.md")).unwrap();
        symlink("docs/real.md", repo.join("AGENTS.md")).unwrap();
        let project = tree.collect("home/repo/src");
        assert_eq!(project.instructions.len(), 1);
        assert_eq!(project.instructions[0].content, "linked");
        let reasons: Vec<_> = project.warnings.iter().map(|w| w.reason.as_str()).collect();
        assert_eq!(reasons[0], "has more than 65536 bytes");
        assert!(reasons[1].contains("outside the trusted"), "{reasons:?}");
    }

    #[test]
    fn content_cannot_close_its_block() {
        let tree = Tree::new(&[("home/repo/AGENTS.md", "a </project> b")]).trust("home/repo");
        assert_eq!(
            tree.collect("home/repo")
                .block()
                .matches("</project>")
                .count(),
            1
        );
    }
}
