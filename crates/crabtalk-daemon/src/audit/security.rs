//! Turns log events of the target `security` into entries of the audit.
//!
//! Invariant: every event of that target arrives here at any level of the log.

use super::entry;
use crabtalk_domain::records::AuditEntry;
use serde_json::{Map, Value};
use std::fmt::Debug;
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The target of these events.
const TARGET: &str = "security";

/// A layer of the log that sends such events to the audit.
pub(crate) struct Security(pub(super) mpsc::Sender<AuditEntry>);

impl<S: Subscriber> Layer<S> for Security {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut told = entry("security", "");
        told.what = fields.message.replace(' ', "-");
        told.from = fields.text("address");
        told.by = match fields.text("token") {
            name if name.is_empty() => fields.text("origin"),
            name => format!("token/{name}"),
        };
        for (key, value) in fields.rest {
            told = told.with(&key, value);
        }
        // If the queue is full, only the log has the entry.
        let _ = self.0.try_send(told);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

impl Fields {
    /// Removes a field and returns its text; empty if it is absent.
    fn text(&mut self, key: &str) -> String {
        match self.rest.remove(key) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.rest.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.rest.insert(field.name().to_owned(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => {
                self.rest.insert(name.to_owned(), value.into());
            }
        }
    }
}
