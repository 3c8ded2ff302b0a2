//! Answers to asks with several questions that come one at a time (WIRE-5).

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was answered so far, by ask and by question.
#[derive(Default)]
pub(crate) struct PartialAnswers(Mutex<HashMap<String, Map<String, Value>>>);

impl PartialAnswers {
    pub(crate) fn all(&self) -> MutexGuard<'_, HashMap<String, Map<String, Value>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
