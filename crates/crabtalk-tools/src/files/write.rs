//! `write`: creates or replaces a file.

use super::Error;
use super::open::Spot;
use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteArguments {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// Puts the content at a judged path; tells what happened.
pub(crate) fn write(path: &Path, content: &str) -> Result<String, Error> {
    let spot = Spot::reach(path, true)?;
    let old = spot.existing()?;
    spot.replace(content.as_bytes(), old.as_ref())?;
    let did = if old.is_some() { "replaced" } else { "created" };
    Ok(format!(
        "{did} {} ({} bytes)",
        path.display(),
        content.len()
    ))
}
