//! The agent's todo list: rows during a run, final lines at its end.

use super::{Kind, Transcript};
use crate::todo::{TOOL, Todo};
use crabtalk_proto::{ToolCallInfo, ToolResultEvent};
use crabtalk_render::Line;

/// The last list, and calls without a result.
#[derive(Default)]
pub(super) struct Shown {
    list: Todo,
    called: Vec<(String, Todo)>,
    /// Whether the list changed since it was last written.
    is_new: bool,
}

impl Shown {
    pub(super) fn start(&mut self, calls: &[ToolCallInfo]) {
        let lists = calls.iter().filter(|call| call.name == TOOL);
        let lists = lists.filter_map(|call| {
            let list = Todo::parse(&call.arguments)?;
            Some((call.call_id.clone(), list))
        });
        self.called.extend(lists);
    }

    pub(super) fn result(&mut self, result: &ToolResultEvent) {
        let is = |(id, _): &(String, Todo)| *id == result.call_id;
        if let Some(at) = self.called.iter().position(is) {
            let (_, list) = self.called.swap_remove(at);
            if !result.is_error {
                self.list = list;
                self.is_new = true;
            }
        }
    }

    /// Drops a list that an earlier run finished.
    pub(super) fn begin_run(&mut self) {
        self.called.clear();
        if self.list.is_done() {
            self.list = Todo::default();
        }
    }
}

impl Transcript {
    /// Restores the list from a message of the history.
    pub(in super::super) fn recall_todo(&mut self, call: &ToolCallInfo) {
        if call.name == TOOL
            && let Some(list) = Todo::parse(&call.arguments)
        {
            self.todo.list = list;
        }
    }

    /// Drops the list, which the history no longer contains.
    pub(in super::super) fn forget_todo(&mut self) {
        self.todo = Shown::default();
    }

    /// The rows of the list for the redrawn area.
    pub(in super::super) fn todo_rows(&self, most: usize) -> Vec<Line> {
        match self.todo.list.is_empty() {
            true => Vec::new(),
            false => self.todo.list.rows(self.width, most),
        }
    }

    /// Writes the list as final lines if the run changed it.
    pub(super) fn write_todo(&mut self) {
        self.todo.called.clear();
        if std::mem::take(&mut self.todo.is_new) && !self.todo.list.is_empty() {
            self.begin(Kind::Tool);
            self.above.extend(self.todo.list.lines(self.width));
        }
    }
}
