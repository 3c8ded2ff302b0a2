//! The fields of runs and of state in a line (STORE-1).

use crabtalk_domain::storage::{MAX_RUN, MetaRecord, RunPhase, RunRecord};
use crabtalk_domain::{ContextUse, Mode, Usage};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The fields of a run; empty ones are omitted.
#[derive(Serialize, Deserialize)]
#[serde(remote = "RunRecord")]
pub(crate) struct RunFields {
    id: u64,
    #[serde(rename = "event", with = "Event")]
    phase: RunPhase,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    origin: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    request_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    guest: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "is_zero")]
    code: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    error: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RunPhase", rename_all = "lowercase")]
enum Event {
    Start,
    End,
    Interrupted,
}

#[derive(Deserialize)]
#[serde(remote = "MetaRecord")]
struct MetaFields {
    title: Option<String>,
    cwd: Option<String>,
    own_cwd: Option<bool>,
    uptime_secs: Option<u64>,
    context: Option<ContextUse>,
    last_run: Option<u64>,
    #[serde(default, deserialize_with = "run")]
    open_run: Option<RunRecord>,
    requests: Option<Vec<(String, u64)>>,
    waiting: Option<Vec<String>>,
    steers: Option<Vec<String>>,
}

/// Reads a run. `None` for a phase of a later version, and for a number above the limit,
/// after which no run could follow.
pub(crate) fn run<'de, D: Deserializer<'de>>(input: D) -> Result<Option<RunRecord>, D::Error> {
    let value = Value::deserialize(input)?;
    let is_known = |event: &str| matches!(event, "start" | "end" | "interrupted");
    let unknown = value["event"]
        .as_str()
        .is_some_and(|event| !is_known(event));
    if value.is_null() || unknown {
        return Ok(None);
    }
    let run = RunFields::deserialize(value).map_err(D::Error::custom)?;
    Ok(Some(run).filter(|run| run.id <= MAX_RUN))
}

pub(crate) fn meta<'de, D: Deserializer<'de>>(input: D) -> Result<Option<MetaRecord>, D::Error> {
    #[derive(Deserialize)]
    struct Wrapped(#[serde(with = "MetaFields")] MetaRecord);
    let meta = Option::<Wrapped>::deserialize(input)?;
    Ok(meta.map(|Wrapped(meta)| MetaRecord {
        last_run: meta.last_run.filter(|run| *run <= MAX_RUN),
        ..meta
    }))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
