//! The descriptions of the tools for models.

use crabtalk_domain::Permission;
use crabtalk_domain::tool::ToolSpec;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn all(timeout: Duration, max_timeout: Duration) -> Vec<Arc<ToolSpec>> {
    vec![
        bash(timeout, max_timeout),
        read(),
        grep(),
        glob(),
        edit(),
        write(),
    ]
}

fn spec(name: &str, description: String, required: &[&str], properties: Value) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description,
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
        .into(),
        default_permission: Permission::Ask,
    })
}

const PATH: &str = "Absolute, relative to the working directory, or beginning with ~/.";

fn bash(timeout: Duration, max_timeout: Duration) -> Arc<ToolSpec> {
    let (usual, longest) = (timeout.as_millis(), max_timeout.as_millis());
    spec(
        "bash",
        "Run a command with bash in the working directory and read what it prints (stdout and \
         stderr together). Each call is a new shell: variables and `cd` do not carry over. There \
         is no terminal and no input, so pass flags that keep programs from asking. When the \
         command ends, everything that it started ends too, background processes included. Long \
         output is shortened in the middle; the result names a file with all of it. To read, \
         change or create files prefer `read`, `edit` and `write`. Commands run in a sandbox: they \
         write below the working directory and to $TMPDIR only, have a home of their own, and \
         reach no network. Ask for more only when a command needs it, with a reason."
            .into(),
        &["command"],
        json!({
            "command": { "type": "string", "description": "The command line or script." },
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": u64::try_from(longest).unwrap_or(u64::MAX),
                "description": format!(
                    "Milliseconds after which the command is ended; {usual} if absent, {longest} at most."
                ),
            },
            "hosts": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Hosts to reach by HTTP or HTTPS, such as crates.io or *.npmjs.org.",
            },
            "write": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Existing paths outside the working directory to write to.",
            },
            "escalate": {
                "type": "boolean",
                "description": "Run outside the sandbox, which always asks a person. Only where hosts and write do not help.",
            },
            "reason": { "type": "string", "description": "Why this command needs more, in one sentence." },
        }),
    )
}

fn read() -> Arc<ToolSpec> {
    spec(
        "read",
        "Read a text file, look at an image (PNG, JPEG, GIF, WebP), or list the names in a folder. Lines come with their numbers, which \
         are not part of the file. Long files come in parts: the result says with which offset \
         to go on."
            .into(),
        &["path"],
        json!({
            "path": { "type": "string", "description": PATH },
            "offset": { "type": "integer", "minimum": 1, "description": "First line to show; 1 if absent." },
            "limit": { "type": "integer", "minimum": 1, "description": "How many lines to show; up to 2000." },
        }),
    )
}

fn grep() -> Arc<ToolSpec> {
    spec(
        "grep",
        "Search the contents of files by a regular expression, line by line. Ignored files \
         (.gitignore, .ignore), `.git` and binary files are left out. Results are \
         `path:line:text`."
            .into(),
        &["pattern"],
        json!({
            "pattern": { "type": "string", "description": "A regular expression (Rust syntax)." },
            "path": { "type": "string", "description": "A folder or file; the working directory if absent." },
            "glob": { "type": "string", "description": "Only files whose path matches, as in *.rs or src/**/*.ts." },
            "context": { "type": "integer", "minimum": 0, "description": "Lines around each match; 0 if absent." },
            "ignore_case": { "type": "boolean", "description": "false if absent." },
            "files_only": { "type": "boolean", "description": "List only the paths of files with a match." },
            "limit": { "type": "integer", "minimum": 1, "description": "Matches at most; 200 if absent." },
        }),
    )
}

fn glob() -> Arc<ToolSpec> {
    spec(
        "glob",
        "List files whose path matches a glob, by name. Ignored files and `.git` are left out."
            .into(),
        &["pattern"],
        json!({
            "pattern": { "type": "string", "description": "As in *.rs (any depth) or src/**/*.ts." },
            "path": { "type": "string", "description": "The folder to list; the working directory if absent." },
            "limit": { "type": "integer", "minimum": 1, "description": "Paths at most; 200 if absent." },
        }),
    )
}

fn edit() -> Arc<ToolSpec> {
    spec(
        "edit",
        "Replace a piece of text in a file. `old_string` must be exactly what the file holds, \
         white space included and without line numbers, and must occur once; give surrounding \
         lines until it does, or set `replace_all`. Nothing changes when it fails."
            .into(),
        &["path", "old_string", "new_string"],
        json!({
            "path": { "type": "string", "description": PATH },
            "old_string": { "type": "string", "description": "The text to be replaced." },
            "new_string": { "type": "string", "description": "The text to put there." },
            "replace_all": { "type": "boolean", "description": "Replace every occurrence; false if absent." },
        }),
    )
}

fn write() -> Arc<ToolSpec> {
    spec(
        "write",
        "Create a file, or replace all of one, with its missing parent folders. To change a part \
         of an existing file use `edit`."
            .into(),
        &["path", "content"],
        json!({
            "path": { "type": "string", "description": PATH },
            "content": { "type": "string", "description": "All that the file is to hold." },
        }),
    )
}
