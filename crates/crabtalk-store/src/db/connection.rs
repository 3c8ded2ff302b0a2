//! Opens connections and reports their errors.

use super::{Contents, Definition};
use crabtalk_domain::records::Error;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// A connection; `None` if it is not open.
pub(super) type Connected = Option<Connection>;

/// How long an operation waits for another process.
const BUSY: Duration = Duration::from_secs(5);

/// Size of a connection's page cache in KiB.
const CACHE_KIB: i32 = 512;

/// Size to which the write-ahead log is truncated.
const MAX_WAL_BYTES: i32 = 8 * 1024 * 1024;

/// Opens a database and migrates it to its newest format.
pub(super) fn open(definition: &Definition) -> Result<Connection, Error> {
    match prepared(definition) {
        Err(Error::Damaged { reason, .. } | Error::Newer { store: reason, .. })
            if definition.contents == Contents::Derived =>
        {
            tracing::warn!(file = %definition.path.display(), %reason, "an index is made again");
            discard(&definition.path);
            prepared(definition)
        }
        opened => opened,
    }
}

fn prepared(definition: &Definition) -> Result<Connection, Error> {
    let path = &definition.path;
    let failed = |e: rusqlite::Error| failed(path, &e);
    if let Some(folder) = path.parent() {
        crabtalk_files::create_folder(folder).map_err(|e| unwritable(path, &e))?;
    }
    let mut connection = Connection::open(path).map_err(failed)?;
    // SQLite creates its other files with the same mode. Fails in a read-only home.
    let _ = std::fs::set_permissions(path, Permissions::from_mode(0o600));
    if let Err(error) = set_up(&connection, definition) {
        let error = failed(error);
        // Without write permission, existing data is still readable.
        let is_refused = matches!(error, Error::Unwritable { .. });
        return match is_refused && path.exists() {
            true => read_only(definition),
            false => Err(error),
        };
    }
    migrate(&mut connection, definition)?;
    Ok(connection)
}

fn set_up(connection: &Connection, definition: &Definition) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    if definition.is_exclusive {
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    let journal = if definition.is_exclusive {
        "DELETE"
    } else {
        "WAL"
    };
    connection.pragma_update(None, "journal_mode", journal)?;
    let synchronous = match definition.contents {
        Contents::Recorded => "FULL",
        Contents::Derived => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "foreign_keys", true)
}

pub(super) fn read_only(definition: &Definition) -> Result<Connection, Error> {
    let path = &definition.path;
    let failed = |e: rusqlite::Error| failed(path, &e);
    let uri = format!("file:{}?immutable=1", uri_path(path));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags).map_err(failed)?;
    let found = format_of(&connection).map_err(failed)?;
    let known = newest(definition);
    let is_index = definition.contents == Contents::Derived;
    if found > known || (is_index && found != known) {
        return Err(newer(definition, found));
    }
    if found < known {
        return Err(Error::Unwritable {
            store: path.display().to_string(),
            reason: format!("its format {found} needs a migration to {known} with write access"),
        });
    }
    Ok(connection)
}

/// Encodes a path for a URI.
fn uri_path(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes().iter();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(byte);
    bytes
        .map(|byte| match plain(byte) {
            true => char::from(*byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// The format that this program writes: for records the number of migrations, for an
/// index a digest of its schema, so that any other index is rebuilt.
fn newest(definition: &Definition) -> i64 {
    match definition.contents {
        Contents::Recorded => i64::try_from(definition.migrations.len()).unwrap_or(i64::MAX),
        Contents::Derived => {
            let statements = definition.migrations.iter().flat_map(|text| text.bytes());
            let digest = statements.fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            });
            // The header field is a signed 32-bit integer; 0 is an empty file.
            i64::from(digest >> 1 | 1)
        }
    }
}

fn format_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn newer(definition: &Definition, found: i64) -> Error {
    Error::Newer {
        store: definition.path.display().to_string(),
        found,
        known: newest(definition),
    }
}

/// Migrates a database to the newest format, in one transaction.
fn migrate(connection: &mut Connection, definition: &Definition) -> Result<(), Error> {
    let failed = |e: rusqlite::Error| failed(&definition.path, &e);
    if format_of(connection).map_err(failed)? == newest(definition) {
        return Ok(());
    }
    let step = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    // Another connection may have migrated it.
    let found = format_of(&step).map_err(failed)?;
    if found == newest(definition) {
        return Ok(());
    }
    let is_other = match definition.contents {
        Contents::Recorded => found > newest(definition),
        Contents::Derived => found != 0,
    };
    if is_other {
        return Err(newer(definition, found));
    }
    let done = usize::try_from(found).unwrap_or_default();
    for statements in &definition.migrations[done..] {
        step.execute_batch(statements).map_err(failed)?;
    }
    step.pragma_update(None, "user_version", newest(definition))
        .map_err(failed)?;
    step.commit().map_err(failed)
}

/// Whether a path is on a network file system, where connections cannot share memory.
pub(super) fn is_on_network(path: &Path) -> bool {
    const NETWORK: [u32; 6] = [
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x517b,      // SMB
        0x6573_5546, // FUSE
        0x0102_1997, // 9P
    ];
    let mut places = path.ancestors().skip(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the magic number is 32 bits of a wider field"
    )]
    let kind = places.find_map(|place| Some(rustix::fs::statfs(place).ok()?.f_type as u32));
    kind.is_some_and(|kind| NETWORK.contains(&kind))
}

/// Closes a connection that reported damage; an index is deleted with it.
pub(super) fn drop_if_broken(
    definition: &Definition,
    connected: &mut Connected,
    done: &Result<(), Error>,
) {
    if let Err(Error::Damaged { reason, .. }) = done {
        *connected = None;
        if definition.contents == Contents::Derived {
            tracing::warn!(file = %definition.path.display(), %reason, "an index is made again");
            discard(&definition.path);
        }
    }
}

fn discard(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(file = %file.display(), %error, "cannot remove a damaged index");
            }
            _ => {}
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::Unwritable {
        store: path.display().to_string(),
        reason: error.to_string(),
    }
}

/// Converts an error of SQLite to an error of the port.
pub(super) fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let (store, reason) = (path.display().to_string(), error.to_string());
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied,
        ) => Error::Unwritable { store, reason },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Damaged { store, reason }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Failed {
            store,
            reason: "another process has locked the file, such as a daemon on another machine; \
                     stop that process and try again"
                .to_owned(),
        },
        Some(_) | None => Error::Failed { store, reason },
    }
}
