//! The contracts of the storage port and of the record ports.
//!
//! For storage, the contract is a set of cases that every store must pass.
//! The cases are data, in `contract/*.txt`. A case begins with `case NAME`; each of
//! its lines is `COMMAND` or `COMMAND = RESULT`. A command without a result must
//! return none. The module `script` documents the commands.

mod record;
pub mod records;
mod script;

use crabtalk_domain::storage::Storage;
use script::Script;

/// A store under test.
pub trait Subject {
    /// The running store.
    fn storage(&self) -> &dyn Storage;

    /// Loses everything in memory, like SIGKILL, and starts again.
    fn restart(&mut self);

    /// Restarts without the records that were not synced.
    fn cut_power(&mut self);

    /// Makes writes fail, like on a full disk, or lets them succeed again.
    fn set_full(&mut self, full: bool);
}

/// The cases of the contract, by topic.
const CASES: [&str; 2] = [
    include_str!("contract/history.txt"),
    include_str!("contract/lists.txt"),
];

/// Runs each case on a new store.
///
/// # Panics
///
/// A case fails; the message names all failed lines.
pub async fn check<S: Subject>(mut fresh: impl FnMut() -> S) {
    let mut failures = Vec::new();
    for text in CASES {
        let mut script: Option<(&str, Script<S>)> = None;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix("case ") {
                script = Some((name, Script::new(fresh())));
                continue;
            }
            let (name, script) = script.as_mut().expect("a case comes first");
            let (command, wanted) = line.split_once(" = ").unwrap_or((line, ""));
            let result = script.run(command.trim()).await;
            if result != wanted.trim() {
                failures.push(format!(
                    "{name}: {command}\n  want {wanted}\n  have {result}"
                ));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}
