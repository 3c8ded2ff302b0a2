//! Encodes records as lines (STORE-1), omitting empty fields.

use crate::fields::RunFields;
use crate::line::{Marker, Stamp};
use crabtalk_domain::storage::{Meta, MetaRecord, NewConversation, RunRecord};
use crabtalk_domain::{ContextUse, ConversationKey, Message, Thinking, ToolCall, Usage};
use serde::Serialize;

/// Appends line 1.
pub(crate) fn head(out: &mut Vec<u8>, key: &ConversationKey, new: &NewConversation) {
    #[derive(Serialize)]
    struct HeadLine<'a> {
        agent: &'a str,
        created_by: &'a str,
        created_at: &'a str,
        title: &'a str,
        uptime_secs: u64,
    }
    line(
        out,
        &HeadLine {
            agent: key.agent.as_str(),
            created_by: key.sender.as_str(),
            created_at: &new.created_at,
            title: "",
            uptime_secs: 0,
        },
    );
}

pub(crate) fn message(out: &mut Vec<u8>, message: &Message) {
    #[derive(Serialize)]
    struct ImageLine<'a> {
        media_type: &'a str,
        data: &'a str,
    }
    #[derive(Serialize)]
    struct MessageLine<'a> {
        role: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        tool_calls: &'a [ToolCall],
        #[serde(skip_serializing_if = "str::is_empty")]
        tool_call_id: &'a str,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<ImageLine<'a>>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        thinking: &'a [Thinking],
        #[serde(skip_serializing_if = "str::is_empty")]
        agent: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        at: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<&'a Usage>,
    }
    let images = message.images.iter();
    line(
        out,
        &MessageLine {
            role: message.role.as_str(),
            content: &message.content,
            tool_calls: &message.tool_calls,
            tool_call_id: &message.tool_call_id,
            is_error: message.is_error,
            images: images
                .map(|image| ImageLine {
                    media_type: image.media_type().as_str(),
                    data: image.base64(),
                })
                .collect(),
            thinking: &message.thinking,
            agent: &message.agent,
            at: &message.at,
            usage: message.usage.as_ref(),
        },
    );
}

/// Appends a compact marker.
pub(crate) fn marker(out: &mut Vec<u8>, marker: &Marker) {
    #[derive(Serialize)]
    struct MarkerLine<'a> {
        compact: &'a str,
        title: &'a str,
        archived_at: &'a str,
        #[serde(skip_serializing_if = "is_zero")]
        keep: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        reopen: Option<u64>,
        #[serde(flatten)]
        stamp: Stamp,
    }
    line(
        out,
        &MarkerLine {
            compact: &marker.summary,
            title: &marker.title,
            archived_at: &marker.archived_at,
            keep: marker.keep,
            reopen: marker.reopen,
            stamp: marker.stamp,
        },
    );
}

/// Appends a rewind.
pub(crate) fn rewind(out: &mut Vec<u8>, to: u64, at: &str, stamp: Stamp) {
    #[derive(Serialize)]
    struct RewindLine<'a> {
        rewind: u64,
        at: &'a str,
        #[serde(flatten)]
        stamp: Stamp,
    }
    let rewind = RewindLine {
        rewind: to,
        at,
        stamp,
    };
    line(out, &rewind);
}

/// Appends a change of state with the complete title, cwd, uptime and context, so that a
/// list finds them in the last lines.
pub(crate) fn meta(out: &mut Vec<u8>, known: &Meta, record: &MetaRecord, stamp: Stamp) {
    #[derive(Serialize)]
    struct MetaFields<'a> {
        title: &'a str,
        cwd: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        own_cwd: bool,
        uptime_secs: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<ContextUse>,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_run: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        open_run: Option<RunLine<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        requests: Option<&'a [(String, u64)]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        waiting: Option<&'a [String]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        steers: Option<&'a [String]>,
    }
    #[derive(Serialize)]
    struct MetaLine<'a> {
        meta: MetaFields<'a>,
        #[serde(flatten)]
        stamp: Stamp,
    }
    let meta = MetaFields {
        title: &known.title,
        cwd: &known.cwd,
        own_cwd: known.own_cwd,
        uptime_secs: known.uptime_secs,
        context: known.context,
        last_run: record.last_run,
        open_run: record.open_run.as_ref().map(RunLine),
        requests: record.requests.as_deref(),
        waiting: record.waiting.as_deref(),
        steers: record.steers.as_deref(),
    };
    line(out, &MetaLine { meta, stamp });
}

/// Appends the beginning or end of a run.
pub(crate) fn run(out: &mut Vec<u8>, record: &RunRecord, stamp: Stamp) {
    #[derive(Serialize)]
    struct StampedLine<'a> {
        run: RunLine<'a>,
        #[serde(flatten)]
        stamp: Stamp,
    }
    line(
        out,
        &StampedLine {
            run: RunLine(record),
            stamp,
        },
    );
}

#[derive(Serialize)]
struct RunLine<'a>(#[serde(with = "RunFields")] &'a RunRecord);

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

fn line(out: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(&mut *out, value).expect("strings and numbers always serialise");
    out.push(b'\n');
}
