//! Updates the index.
//!
//! A file is read again if its size, times or inode changed. The work is
//! committed in parts, so that an update can be interrupted and
//! searches see its progress.

use crate::index::{self, Error, Index};
use crate::open::{self, Stamp};
use crate::rules::{Rules, looks_secret, text};
use crate::settings::Settings;
use crate::walk::Walk;
use rusqlite::{Transaction, TransactionBehavior, params};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of files, in order of name.
const MAX_FILES: u64 = 200_000;

/// Bytes read between two commits, which bounds the wait of other programs.
const PIECE_BYTES: u64 = 8 * 1024 * 1024;

/// The result of an update.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Updated {
    /// Files that were read.
    pub read: u64,
    /// Files that were removed.
    pub removed: u64,
    /// Whether the update is complete.
    pub complete: bool,
    /// Folders that cannot be read completely, with the reason.
    pub failed: Vec<String>,
}

/// A change in the index.
enum Change {
    Same(i64),
    /// The file is new or changed; the text is `None` if it has none.
    New(Stamp, Option<String>),
}

impl Index {
    /// Updates the index until a deadline. `except` is a folder that is always excluded.
    pub fn update(
        &mut self,
        settings: &Settings,
        except: &Path,
        until: Option<Instant>,
    ) -> Result<Updated, Error> {
        let made_by = format!("secrets = {}", settings.secrets);
        let mut begin = || {
            let transaction = writing(self)?;
            index::made_by(&transaction, &made_by)?;
            transaction.commit()
        };
        begin().map_err(|e| self.failed(e))?;
        let mut updated = Updated {
            complete: true,
            ..Updated::default()
        };
        let rules = Rules::new(&settings.skip, settings.secrets);
        let walk = Walk {
            rules: &rules,
            except,
            beyond: RefCell::default(),
        };
        let mut pass = Pass {
            index: self,
            settings,
            until,
            seen: mark(),
            files: 0,
            has_more: false,
            pending: Vec::new(),
            pending_bytes: 0,
            read: 0,
            failed: None,
        };
        for folder in &settings.folders {
            let walked = walk.run(folder, &mut |parent, name, path| {
                pass.visit(parent, name, path)
            });
            if std::mem::take(&mut pass.has_more) {
                walk.tell(folder, &format!("only {MAX_FILES} files are indexed"));
            }
            match walked {
                Ok(all) => updated.complete &= all,
                Err(e) => updated.failed.push(format!("{}: {e}", folder.display())),
            }
            if !updated.complete {
                break;
            }
        }
        updated.failed.append(&mut walk.beyond.borrow_mut());
        pass.write();
        let (read, seen) = (pass.read, pass.seen);
        if let Some(e) = pass.failed {
            return Err(self.failed(e));
        }
        updated.read = read;
        if updated.complete {
            // Unreadable files are removed as well.
            updated.removed = self.forget(seen).map_err(|e| self.failed(e))?;
        }
        Ok(updated)
    }

    /// Removes files that were found neither in this pass nor in a later one of another program.
    fn forget(&mut self, seen: i64) -> rusqlite::Result<u64> {
        let transaction = writing(self)?;
        let gone: Vec<i64> = {
            let mut statement = transaction.prepare("SELECT id FROM file WHERE seen < ?1")?;
            let rows = statement.query_map([seen], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for file in &gone {
            index::remove(&transaction, *file)?;
        }
        transaction.commit()?;
        Ok(gone.len() as u64)
    }
}

fn writing(index: &mut Index) -> rusqlite::Result<Transaction<'_>> {
    index
        .connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
}

/// A unique, increasing number of this pass.
fn mark() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// One pass through all folders.
struct Pass<'a> {
    index: &'a mut Index,
    settings: &'a Settings,
    until: Option<Instant>,
    seen: i64,
    files: u64,
    /// Whether the file limit was exceeded.
    has_more: bool,
    pending: Vec<(std::path::PathBuf, Change)>,
    pending_bytes: u64,
    read: u64,
    failed: Option<rusqlite::Error>,
}

impl Pass<'_> {
    fn visit(&mut self, parent: BorrowedFd<'_>, name: &OsStr, path: &Path) -> ControlFlow<()> {
        if self.until.is_some_and(|until| Instant::now() >= until) || self.failed.is_some() {
            return ControlFlow::Break(());
        }
        if self.files >= MAX_FILES {
            self.has_more = true;
            return ControlFlow::Continue(());
        }
        if let Some(change) = self.look(parent, name, path) {
            self.files += 1;
            self.pending.push((path.to_owned(), change));
            // Unchanged files also take time.
            self.pending_bytes += 1024;
        }
        if self.pending_bytes >= PIECE_BYTES {
            self.write();
        }
        ControlFlow::Continue(())
    }

    /// The change of a file; `None` if it is excluded.
    fn look(&mut self, parent: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Option<Change> {
        let opened = open::file_at(parent, name).ok()?;
        let stamp = opened.stamp;
        let known = self.index.connection.unchecked_transaction();
        let known = match known.and_then(|transaction| index::known(&transaction, path)) {
            Ok(known) => known,
            Err(e) => {
                self.failed = Some(e);
                return None;
            }
        };
        match known {
            Some((file, before)) if before == stamp => return Some(Change::Same(file)),
            _ if stamp.size > self.settings.max_file_bytes => return None,
            _ => {}
        }
        let bytes = opened.read(self.settings.max_file_bytes).ok()??;
        self.pending_bytes += bytes.len() as u64;
        let text = text(bytes).filter(|text| self.settings.secrets || !looks_secret(text));
        Some(Change::New(stamp, text))
    }

    fn write(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if let Err(e) = self.write_all(pending) {
            self.failed = Some(e);
        }
    }

    fn write_all(&mut self, pending: Vec<(std::path::PathBuf, Change)>) -> rusqlite::Result<()> {
        let seen = self.seen;
        let transaction = writing(self.index)?;
        for (path, change) in pending {
            match change {
                Change::Same(file) => {
                    let mark = "UPDATE file SET seen = max(seen, ?1) WHERE id = ?2";
                    transaction.execute(mark, params![seen, file])?;
                }
                Change::New(stamp, text) => {
                    // Another program may have indexed it first.
                    if let Some((file, _)) = index::known(&transaction, &path)? {
                        index::remove(&transaction, file)?;
                    }
                    index::insert(&transaction, &path, stamp, seen, text.as_deref())?;
                    self.read += u64::from(text.is_some());
                }
            }
        }
        transaction.commit()
    }
}
