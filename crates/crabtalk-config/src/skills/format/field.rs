//! The fields of a frontmatter.

use super::Document;
use crate::skills::finding::{Finding, Level, Trouble};
use crate::skills::{name, tools};
use crabtalk_files::tree::{Field, Value};
use std::path::Path;

/// Longest description in characters, by the format.
const MAX_DESCRIPTION: usize = 1024;

/// Longest compatibility in characters, by the format.
const MAX_COMPATIBILITY: usize = 500;

/// Maximum characters of the body's first line as a substitute for the description.
const MAX_BORROWED: usize = 200;

/// The fields of the format.
const KNOWN: &str = "name, description, license, compatibility, metadata and allowed-tools";

/// Collects the findings about one file.
pub(super) struct Judge<'a> {
    file: &'a Path,
    /// Lines of the file before the YAML.
    pub(super) lines_before: usize,
    pub(super) findings: Vec<Finding>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(file: &'a Path) -> Self {
        Self {
            file,
            lines_before: 0,
            findings: Vec::new(),
        }
    }

    /// Adds a finding about a line of the file, or about the whole file.
    pub(super) fn say(
        &mut self,
        level: Level,
        line: Option<usize>,
        what: impl Into<String>,
        right: impl Into<String>,
    ) {
        let trouble = Trouble::new(what, right);
        self.findings
            .push(Finding::new(level, self.file, line, trouble));
    }

    /// Adds a finding about a line of the frontmatter.
    pub(super) fn say_in_front(
        &mut self,
        level: Level,
        line: usize,
        what: impl Into<String>,
        right: impl Into<String>,
    ) {
        self.say(level, Some(self.lines_before + line), what, right);
    }

    fn wrong(&mut self, line: usize, what: impl Into<String>, right: impl Into<String>) {
        self.say_in_front(Level::Wrong, line, what, right);
    }

    /// Reads every field into the document.
    pub(super) fn fields(&mut self, fields: Vec<Field>, document: &mut Document) {
        for field in fields {
            let line = field.at.line;
            match field.key.as_str() {
                "name" => {
                    document.name = self.text(field);
                    document.name_line = Some(self.lines_before + line);
                    if let Some(trouble) = document.name.as_deref().and_then(name::strict_trouble) {
                        self.wrong(line, trouble.what, trouble.right);
                    }
                }
                "description" => {
                    document.description = self.limited(field, MAX_DESCRIPTION);
                }
                "compatibility" => {
                    document.compatibility = self.limited(field, MAX_COMPATIBILITY);
                }
                "license" => document.license = self.text(field),
                "metadata" => self.metadata(field, document),
                "allowed-tools" => self.tools(field, document),
                other => {
                    let right = match other.replace('_', "-").to_lowercase().as_str() {
                        "allowed-tools" | "allowedtools" => "write `allowed-tools`".to_owned(),
                        "name" => "write `name`".to_owned(),
                        "description" => "write `description`".to_owned(),
                        _ => format!("the fields are {KNOWN}; put others below `metadata`"),
                    };
                    self.wrong(line, format!("`{other}` is not a field of a skill"), right);
                }
            }
        }
    }

    /// Checks the required fields; the body's first line replaces a missing
    /// description.
    pub(super) fn required(&mut self, document: &mut Document) {
        if document.name.is_none() {
            self.say(
                Level::Wrong,
                None,
                "there is no `name`",
                "add `name:` with the name of the folder",
            );
        }
        if document.description.is_some() {
            return;
        }
        let borrowed = document
            .body
            .lines()
            .map(|line| line.trim_start_matches('#').trim())
            .find(|line| !line.is_empty());
        document.description = borrowed.map(|line| line.chars().take(MAX_BORROWED).collect());
        let level = match document.description {
            Some(_) => Level::Wrong,
            None => Level::Refused,
        };
        self.say(
            level,
            None,
            "there is no `description`",
            "add `description:`, saying what the skill does and when to use it",
        );
    }

    fn limited(&mut self, field: Field, limit: usize) -> Option<String> {
        let (key, line) = (field.key.clone(), field.at.line);
        let text = self.text(field)?;
        let count = text.chars().count();
        if count > limit {
            self.wrong(
                line,
                format!("`{key}` has {count} characters, the limit is {limit}"),
                "shorten it",
            );
        }
        Some(text)
    }

    /// A field's text; other scalars are converted, with a finding.
    fn text(&mut self, field: Field) -> Option<String> {
        let (key, line) = (field.key, field.at.line);
        let text = match (field.node.value.scalar(), field.node.value) {
            (None, Value::String(text)) => text,
            (None, Value::Null) => String::new(),
            (scalar, _) => {
                let right = match &scalar {
                    Some(scalar) => format!("write `{key}: \"{scalar}\"`"),
                    None => format!("write `{key}: ...` on one line"),
                };
                self.wrong(line, format!("`{key}` is not a text"), right);
                scalar?
            }
        };
        let text = text.trim();
        if text.is_empty() {
            self.wrong(
                line,
                format!("`{key}` is empty"),
                "fill it in or remove the line",
            );
            return None;
        }
        Some(text.to_owned())
    }

    fn metadata(&mut self, field: Field, document: &mut Document) {
        let Value::Table(entries) = field.node.value else {
            self.wrong(
                field.at.line,
                "`metadata` is not a table",
                "put indented `key: \"value\"` lines below it",
            );
            return;
        };
        for Field { key, node, .. } in entries {
            let text = match (node.value.scalar(), node.value) {
                (None, Value::String(text)) => text,
                (scalar, _) => {
                    let right = match &scalar {
                        Some(scalar) => format!("write `{key}: \"{scalar}\"`"),
                        None => "metadata has texts only".to_owned(),
                    };
                    let what = format!("`metadata.{key}` is not a text");
                    self.wrong(field.at.line, what, right);
                    let Some(scalar) = scalar else { continue };
                    scalar
                }
            };
            document.metadata.insert(key, text);
        }
    }

    fn tools(&mut self, field: Field, document: &mut Document) {
        let line = field.at.line;
        let entries = match field.node.value {
            Value::String(list) => tools::split(&list),
            Value::List(items) => items
                .into_iter()
                .filter_map(|item| {
                    if let Value::String(entry) = item.value {
                        return Some(entry.trim().to_owned());
                    }
                    self.wrong(
                        line,
                        "`allowed-tools` has an entry that is not a text",
                        "for example `- Bash(git:*)`",
                    );
                    None
                })
                .collect(),
            Value::Null => return,
            Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Date(_)
            | Value::Table(_) => {
                self.wrong(
                    line,
                    "`allowed-tools` is not a list of tools",
                    "for example `allowed-tools: Bash(git:*) Read`",
                );
                return;
            }
        };
        for entry in entries {
            if tools::patterns(&entry).is_empty() {
                self.wrong(
                    line,
                    format!("`allowed-tools` has {entry:?}, which names no tool"),
                    "for example `Bash(git:*)` or `Read`",
                );
            } else {
                document.allowed_tools.push(entry);
            }
        }
    }
}
