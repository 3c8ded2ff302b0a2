//! `crabtalk backup`: writes a home to one archive, also while its daemon runs.
//!
//! Invariants: the archive is complete or absent; a log is copied up to its length at the
//! beginning of the copy, and a line that was being written is repaired as after a
//! crash; the records are one consistent state of their database; derived files are
//! omitted.

use anyhow::{Context, ensure};
use crabtalk_config::Home;
use crabtalk_store::Records;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Paths below the home that a backup omits: files of a running daemon, and derived
/// ones.
const LEFT_OUT: &[&str] = &["run", "logs", "daemon.sock", "state/caches", "state/recall"];

/// The file of the records, in a home and in an archive.
const RECORDS: &str = "state/records.db";

/// Writes a backup of a home to a file that does not exist yet, and returns a report for
/// people.
///
/// # Errors
/// The home cannot be read, or the file cannot be written; then no file is created.
pub fn backup(home: &Home, file: &Path) -> anyhow::Result<String> {
    ensure!(
        home.root().is_dir(),
        "{} is not a home; nothing was written",
        home.root().display()
    );
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let unwritable = || format!("cannot write {}", file.display());
    let unfinished = tempfile::Builder::new()
        .prefix(".crabtalk-backup-")
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .with_context(unwritable)?;
    let files = {
        let mut archive = Archive {
            builder: Builder::new(unfinished.as_file()),
            root: home.root().canonicalize()?,
            own: unfinished.path().canonicalize()?,
            files: 0,
        };
        archive.add_folder(Path::new(""))?;
        archive.add_records(folder)?;
        archive.builder.finish().with_context(unwritable)?;
        archive.files
    };
    unfinished.as_file().sync_all().with_context(unwritable)?;
    let bytes = unfinished.as_file().metadata()?.len();
    unfinished
        .persist_noclobber(file)
        .map_err(|e| e.error)
        .with_context(|| format!("{}; move an older backup away first", unwritable()))?;
    Ok(format!(
        "{files} files, {} MiB in {}; it holds keys and conversations, keep it private",
        bytes.div_ceil(1024 * 1024),
        file.display()
    ))
}

struct Archive<'a> {
    builder: Builder<&'a File>,
    root: PathBuf,
    /// The archive, which may be in the home.
    own: PathBuf,
    files: u64,
}

impl Archive<'_> {
    fn add_folder(&mut self, below: &Path) -> anyhow::Result<()> {
        let folder = self.root.join(below);
        let cannot = || format!("cannot read {}", folder.display());
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).with_context(cannot)? {
            names.push(entry.with_context(cannot)?.file_name());
        }
        names.sort();
        for name in names {
            let below = below.join(name);
            if is_left_out(&below) {
                continue;
            }
            let path = self.root.join(&below);
            let found = match path.symlink_metadata() {
                Ok(found) => found,
                // Removed or renamed during the backup.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
            };
            if found.is_dir() {
                self.builder.append_data(
                    &mut header(&found, EntryType::Directory),
                    &below,
                    io::empty(),
                )?;
                self.add_folder(&below)?;
            } else if found.is_file() && self.own != path {
                self.add_file(&path, &below)?;
            } else if found.is_symlink() {
                let target = std::fs::read_link(&path)?;
                let mut header = header(&found, EntryType::Symlink);
                self.builder.append_link(&mut header, &below, target)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, below: &Path) -> anyhow::Result<()> {
        let file = match crabtalk_files::open(path) {
            Ok(file) => file,
            Err(e) if e.is_absent() => return Ok(()),
            Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
        };
        let found = file.metadata()?;
        let mut header = header(&found, EntryType::Regular);
        header.set_size(found.len());
        // Pad a file that became shorter, so that later files keep their offsets.
        let content = file.chain(io::repeat(b'\n')).take(found.len());
        self.builder.append_data(&mut header, below, content)?;
        self.files += 1;
        Ok(())
    }

    fn add_records(&mut self, folder: &Path) -> anyhow::Result<()> {
        let copies = tempfile::tempdir_in(folder)?;
        let copy = copies.path().join("records.db");
        if Records::in_state(&self.root.join("state")).copy_to(&copy)? {
            self.add_file(&copy, Path::new(RECORDS))?;
        }
        Ok(())
    }
}

fn is_left_out(below: &Path) -> bool {
    let name = below.file_name().and_then(|name| name.to_str());
    let is_database = |database: &str| name.is_some_and(|name| name.starts_with(database));
    LEFT_OUT.iter().any(|out| below == Path::new(out))
        // Derived indexes, also those of components.
        || (below.starts_with("state") && is_database("index.db"))
        // SQLite copies the records.
        || (below.parent() == Some(Path::new("state")) && is_database("records.db"))
}

fn header(found: &Metadata, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_metadata(found);
    header.set_entry_type(kind);
    header.set_size(0);
    header
}
