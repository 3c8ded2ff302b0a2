//! The forms of transcripts.

mod claude;
mod codex;
mod crabtalk;
mod gemini;
mod pi;

use serde::Deserialize;
use serde_json::Value;

/// The form of a program's transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Rollouts of codex.
    Codex,
    /// Sessions of pi.
    Pi,
    /// Projects of claude.
    Claude,
    /// Chats of gemini.
    Gemini,
    /// Conversation logs of this project.
    Crabtalk,
}

/// A record of a transcript of any form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// The header, which identifies the session.
    Head {
        /// The session's id.
        session: String,
        /// The working folder; empty if unknown.
        folder: String,
    },
    Began,
    /// A user's turn.
    User(String),
    Text(String),
    Call {
        id: String,
        /// The tool's name as in rules.
        tool: String,
        /// The command, path or arguments.
        subject: String,
    },
    /// A call has a result.
    Result {
        id: String,
    },
    /// The result of a request to the model.
    Usage {
        /// Tokens in the context.
        tokens: Option<u64>,
        window: Option<u64>,
    },
    Ended {
        error: Option<String>,
        /// The last output, if the record repeats it.
        output: Option<String>,
        /// The record's name, as evidence.
        name: &'static str,
    },
    /// A summary replaced the preceding history.
    Compacted,
}

/// Reads lines of a form.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    form: Form,
}

impl Reader {
    pub(crate) fn new(form: Form) -> Self {
        Self { form }
    }

    pub(crate) fn read(&self, line: &[u8]) -> Vec<Record> {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        match self.form {
            Form::Codex => codex::read(&line, &mut found),
            Form::Pi => pi::read(&line, &mut found),
            Form::Claude => claude::read(&line, &mut found),
            Form::Gemini => gemini::read(&line, &mut found),
            Form::Crabtalk => crabtalk::read(&line, &mut found),
        }
        found
    }
}

/// The text of a string, or of the text blocks in a list.
fn texts(content: &Value, kinds: &[&str]) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().into_iter().flatten();
    let texts = blocks.filter(|block| {
        block["type"]
            .as_str()
            .is_none_or(|kind| kinds.contains(&kind))
    });
    let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// The text and calls of an answer; `kind` and `arguments` name the call blocks and their arguments.
fn answer(message: &Value, (kind, arguments): (&str, &str), found: &mut Vec<Record>) {
    said(&message["content"], found);
    for block in message["content"].as_array().into_iter().flatten() {
        if block["type"] == kind {
            found.push(call_of(block, arguments));
        }
    }
}

fn said(content: &Value, found: &mut Vec<Record>) {
    let said = texts(content, &["text"]);
    if !said.is_empty() {
        found.push(Record::Text(said));
    }
}

fn call_of(call: &Value, arguments: &str) -> Record {
    let name = call["name"].as_str().unwrap_or_default();
    let (tool, subject) = tool(name, &call[arguments]);
    let id = text(&call["id"]);
    Record::Call { id, tool, subject }
}

/// Name and subject of a tool, as in rules.
fn tool(name: &str, arguments: &Value) -> (String, String) {
    let tool = match name {
        "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec" | "Bash"
        | "run_shell_command" | "bash" => "bash",
        "apply_patch" | "Edit" | "MultiEdit" | "NotebookEdit" | "replace" | "edit" => "edit",
        "Write" | "write_file" | "write" => "write",
        "Read" | "read_file" | "read" => "read",
        other => other,
    };
    let named = ["command", "cmd", "path", "file_path", "filePath"];
    let subject = named.iter().find_map(|name| {
        let value = &arguments[*name];
        let words = || value.as_array().map(|words| command_of(words));
        value.as_str().map(str::to_owned).or_else(words)
    });
    let whole = || {
        arguments
            .as_str()
            .map_or_else(|| arguments.to_string(), str::to_owned)
    };
    let subject = subject.unwrap_or_else(whole);
    (tool.to_owned(), subject)
}

/// The script of a shell command line, or else its words.
fn command_of(words: &[Value]) -> String {
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [_, "-lc" | "-c", command] => (*command).to_owned(),
        words => words.join(" "),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
