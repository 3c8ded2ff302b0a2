//! Changes to `config.toml` by protocol (OPS-4).
//!
//! Invariants: only a file that says what is in force is changed, so that
//! nobody's half-done edit takes effect; what would not work is not written;
//! what was written is in force.

use crate::compose;
use crate::error::Error;
use crate::login;
use crabtalk_config::{Config, ConfigFile, Error as ConfigError, Home, Warning, write_atomic};
use std::path::Path;

/// Puts a text in the place of the file, which has to be the one that `base`
/// was read from. It need not be in force: whoever mends it has seen it.
pub(crate) fn replace(home: &Home, base: Option<&str>, text: &str) -> Result<(), Error> {
    let path = home.config_file();
    if compose::text(home)?.as_deref() != base {
        return Err(ConfigError::Conflict(path).into());
    }
    check(text, &path)?;
    Ok(write_atomic(&path, text)?)
}

/// Whether a text would work as the configuration.
fn check(text: &str, path: &Path) -> Result<Vec<Warning>, Error> {
    let (config, warnings) = Config::parse(text, path, &login::env)?;
    let chosen = compose::chosen(&config).map_err(Error::Invalid)?;
    chosen.check().map_err(Error::Invalid)?;
    Ok(warnings)
}

/// Sets or removes what stands at a key with dots.
pub(crate) fn set(
    file: &mut ConfigFile,
    key: &str,
    value: Option<&serde_json::Value>,
) -> Result<(), Error> {
    let path: Vec<&str> = key.split('.').collect();
    if path.iter().any(|part| part.trim().is_empty()) {
        return Err(Error::Invalid(format!(
            "{key:?} names no place in the configuration: write it with dots, as in limits.queued_runs"
        )));
    }
    let unknown = |file: &ConfigFile| {
        let (_, warnings) = Config::parse(&file.text(), Path::new("config.toml"), &login::env)?;
        let keys = warnings.into_iter().filter_map(|warning| warning.unknown);
        Ok::<_, ConfigError>(keys.collect::<Vec<_>>())
    };
    let before = unknown(file)?;
    match value {
        Some(value) => file.set(&path, value)?,
        None if file.remove(&path) => {}
        None => {
            return Err(Error::NotFound(format!(
                "config.toml does not say {key}: its default holds already"
            )));
        }
    }
    // What a file may have by accident, nobody sets on purpose.
    match unknown(file)?.into_iter().find(|key| !before.contains(key)) {
        Some(key) => Err(Error::Invalid(format!("nothing was written: {key}"))),
        None => Ok(()),
    }
}

/// Changes the file, whose text has to be `in_force`.
pub(crate) fn edit(
    home: &Home,
    in_force: Option<&str>,
    change: impl FnOnce(&mut ConfigFile, &Config) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = home.config_file();
    let env = login::env;
    let mut file = ConfigFile::open(&path)?;
    if compose::text(home)?.as_deref() != in_force {
        return Err(Error::Conflict(format!(
            "{} was changed since the daemon read it: run `crabtalk daemon reload`, then repeat this",
            path.display()
        )));
    }
    let (before, _) = Config::parse(&file.text(), &path, &env)?;
    change(&mut file, &before)?;
    check(&file.text(), &path)?;
    file.save(&env)?;
    Ok(())
}
