//! `write`: creates or replaces a file.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteArguments {
    pub(crate) path: String,
    pub(crate) content: String,
}
