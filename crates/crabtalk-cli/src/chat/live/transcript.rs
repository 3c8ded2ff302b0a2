//! Lays out events of a run as final lines and rows that may still change.
//!
//! Invariants: foreign text is indented by a margin, so it cannot imitate CrabTalk's marks;
//! final lines are returned once; an empty line separates kinds of output.

mod entries;
mod todo;
mod tools;

use crate::text::{ago_secs, counted, image_note, money, summary};
use crate::view;
use crabtalk_proto::{
    CompactedEvent, Image, StreamEnd, StreamEvent, StreamStart, UserMessageEvent, code,
    stream_event,
};
use crabtalk_render::{Line, Markdown, Span, shorten, theme, tokens};
use std::time::Instant;
pub(super) use tools::Tools;

/// Margin of foreign text.
pub(super) const MARGIN: &str = "  ";

/// Maximum width of text.
const MAX_COLUMNS: usize = 108;

/// Maximum lines shown of a user's message.
const PERSON_LINES: usize = 24;

/// Rows of live reasoning.
const THINKING_ROWS: usize = 3;

/// Maximum bytes of reasoning kept for Ctrl-T.
const MAX_THOUGHT: usize = 256 * 1024;

/// Kind of the last lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Person,
    Text,
    Tool,
    Note,
}

/// The conversation on the screen.
pub(super) struct Transcript {
    width: usize,
    /// Final lines not written yet.
    above: Vec<Line>,
    last: Kind,
    markdown: Markdown,
    /// Whether this step has answer text.
    speaking: bool,
    pub(super) tools: Tools,
    todo: todo::Shown,
    thinking: Option<(String, Instant)>,
    /// The last reasoning.
    pub(super) thought: String,
    /// The last or current answer as Markdown.
    pub(super) answer: String,
    /// The primary agent, shown without a name.
    primary: String,
    started: Instant,
}

impl Transcript {
    pub(super) fn new(columns: usize) -> Self {
        let width = text_width(columns);
        Self {
            width,
            above: Vec::new(),
            last: Kind::Nothing,
            markdown: Markdown::new(width),
            speaking: false,
            tools: Tools::default(),
            todo: todo::Shown::default(),
            thinking: None,
            thought: String::new(),
            answer: String::new(),
            primary: String::new(),
            started: Instant::now(),
        }
    }

    pub(super) fn resize(&mut self, columns: usize) {
        self.width = text_width(columns);
        self.markdown.set_width(self.width);
    }

    /// Width of the text.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn set_primary(&mut self, agent: &str) {
        agent.clone_into(&mut self.primary);
    }

    /// Adds unwritten lines of an earlier transcript.
    pub(super) fn keep(&mut self, above: Vec<Line>) {
        self.last = if above.is_empty() {
            self.last
        } else {
            Kind::Note
        };
        self.above = above;
    }

    /// Takes the final lines.
    pub(super) fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.above)
    }

    /// Shows a user's message.
    pub(super) fn person(&mut self, text: &str, from: Option<&str>) {
        self.begin(Kind::Person);
        // User text is not rendered as Markdown.
        let mut lead = Span::new("\u{203a} ", theme::HEADING);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(PERSON_LINES) {
            let line = Line::styled(line, theme::BOLD);
            // Lines that fit keep their spaces.
            let parts = match line.width() > self.width {
                true => crabtalk_render::wrapped(&line, self.width),
                false => vec![line],
            };
            for part in parts {
                self.above.push(part.behind(&[lead]));
                lead = Span::new(MARGIN, theme::PLAIN);
            }
        }
        if lines.len() > PERSON_LINES {
            let more = lines.len() - PERSON_LINES;
            let more = counted(more, "line");
            let more = format!("{MARGIN}\u{2026} {more} more");
            self.above.push(Line::styled(more, theme::DIM));
        }
        if let Some(from) = from {
            let from = Line::styled(format!("({from})"), theme::DIM);
            let margin = [Span::new(MARGIN, theme::PLAIN)];
            let parts = crabtalk_render::wrapped(&from, self.width).into_iter();
            self.above.extend(parts.map(|part| part.behind(&margin)));
        }
    }

    /// Shows a chat command.
    pub(super) fn did(&mut self, command: &str) {
        self.begin(Kind::Person);
        let mut lead = Span::new("\u{203a} ", theme::HEADING);
        let line = Line::plain(summary(command));
        for part in crabtalk_render::wrapped(&line, self.width) {
            self.above.push(part.behind(&[lead]));
            lead = Span::new(MARGIN, theme::PLAIN);
        }
    }

    /// Shows an attached image.
    pub(super) fn shown(&mut self, image: &Image) {
        let line = format!("{MARGIN}{}", image_note(image));
        self.above.push(Line::styled(line, theme::DIM));
    }

    /// Shows a note.
    pub(super) fn note(&mut self, text: &str) {
        self.remark("\u{b7} ", text, theme::DIM);
    }

    /// Shows a problem.
    pub(super) fn problem(&mut self, text: &str) {
        self.remark("! ", text, theme::BAD);
    }

    fn remark(&mut self, mark: &str, text: &str, style: anstyle::Style) {
        self.begin(Kind::Note);
        let mut mark = mark;
        for line in text.lines() {
            for part in crabtalk_render::wrapped(&Line::styled(line, style), self.width) {
                self.above.push(part.behind(&[Span::new(mark, style)]));
                mark = MARGIN;
            }
        }
    }

    /// Shows the output of a chat command.
    pub(super) fn lines(&mut self, lines: Vec<Line>) {
        self.begin(Kind::Text);
        for line in lines {
            self.indented(line);
        }
    }

    /// Shows a complete answer.
    pub(super) fn said(&mut self, agent: &str, text: &str) {
        self.name(agent);
        self.begin(Kind::Text);
        for line in crabtalk_render::render(text, self.width) {
            self.indented(line);
        }
    }

    /// Handles an event of a run.
    pub(super) fn event(&mut self, event: &StreamEvent, now: Instant) {
        use stream_event::Event;
        let Some(event) = &event.event else {
            // An event of a newer daemon.
            return;
        };
        match event {
            Event::Start(e) => self.start(e, now),
            Event::Chunk(e) => self.chunk(&e.content),
            Event::Thinking(e) => self.think(&e.content, now),
            Event::ThinkingStart(_) => self.thinking = Some((String::new(), now)),
            Event::ThinkingEnd(_) => self.end_thinking(now),
            Event::TextStart(e) => self.name(&e.agent),
            Event::TextEnd(_) => self.end_text(),
            Event::ToolStart(e) => {
                self.end_text();
                self.todo.start(&e.calls);
                self.tools.start(&e.calls, now);
            }
            Event::ToolResult(e) => {
                self.todo.result(e);
                let lines = self.tools.result(e, self.width);
                if let Some(lines) = lines {
                    self.begin(Kind::Tool);
                    self.above.extend(lines);
                }
            }
            Event::ToolProgress(e) => self.tools.progress(e),
            // Place in the queue.
            Event::Queued(_) | Event::ToolsComplete(_) | Event::AskUser(_) => {}
            Event::End(e) => self.end(e, now),
            Event::UserSteered(e) => self.person(&e.content, None),
            Event::UserMessage(e) => self.other(e),
            Event::Compacted(e) => self.compacted(e),
            Event::Interrupted(e) => {
                self.note(&format!("run {} was interrupted: {}", e.run, e.reason));
            }
            Event::Waiting(e) => self.note(&format!(
                "the run waits for {} to approve a tool call, for {} at most",
                e.whom,
                crate::text::duration(e.timeout_secs)
            )),
            Event::AskSettled(e) => self.note(&view::settled(e)),
            Event::Notice(e) => self.note(&e.text),
        }
    }

    fn start(&mut self, start: &StreamStart, now: Instant) {
        self.started = now;
        self.answer.clear();
        self.todo.begin_run();
        if self.primary.is_empty() {
            self.primary.clone_from(&start.agent);
        }
        if !start.notice.is_empty() {
            self.note(&start.notice);
        }
    }

    fn other(&mut self, message: &UserMessageEvent) {
        let from = match message.guest.as_str() {
            "" => view::origin(&message.origin),
            guest => format!("{}, to {guest}", view::origin(&message.origin)),
        };
        self.person(&message.content, Some(&from));
    }

    fn compacted(&mut self, event: &CompactedEvent) {
        if event.failed.is_empty() {
            self.note(&format!(
                "compacted {} tokens to {} (archive: {})",
                event.tokens_before, event.tokens_after, event.title
            ));
        } else {
            self.problem(&format!("cannot compact: {}", event.failed));
        }
    }

    /// The agent's name, unless it is the primary agent.
    fn name(&mut self, agent: &str) {
        if agent.is_empty() || agent == self.primary || self.speaking {
            return;
        }
        self.begin(Kind::Person);
        let name = Line::styled(format!("\u{25cf} {agent}"), guest_style(agent));
        self.above.push(name);
        self.last = Kind::Nothing;
    }

    fn chunk(&mut self, text: &str) {
        self.answer.push_str(text);
        if !self.speaking {
            self.speaking = true;
            self.markdown = Markdown::new(self.width);
        }
        let lines = self.markdown.push(text);
        self.text(lines);
    }

    fn text(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        if self.last != Kind::Text {
            self.begin(Kind::Text);
        }
        for line in lines {
            self.indented(line);
        }
    }

    fn end_text(&mut self) {
        if !std::mem::take(&mut self.speaking) {
            return;
        }
        let lines = self.markdown.finish();
        self.text(lines);
        // The next text begins a new paragraph.
        if self.last == Kind::Text {
            self.last = Kind::Person;
        }
    }

    fn think(&mut self, text: &str, now: Instant) {
        let (thought, _) = self.thinking.get_or_insert_with(|| (String::new(), now));
        if thought.len() < MAX_THOUGHT {
            thought.push_str(text);
        }
    }

    fn end_thinking(&mut self, now: Instant) {
        let Some((thought, since)) = self.thinking.take() else {
            return;
        };
        if thought.trim().is_empty() {
            return;
        }
        let took = ago_secs(now.duration_since(since));
        self.thought = thought;
        self.note(&format!("thought for {took} (Ctrl-T shows it)"));
    }

    fn end(&mut self, end: &StreamEnd, now: Instant) {
        self.end_thinking(now);
        self.end_text();
        self.tools.forget();
        self.write_todo();
        if end.code == code::CANCELLED {
            return self.note("cancelled");
        }
        if !end.error.is_empty() || end.code != 0 {
            let error = match end.error.as_str() {
                "" => "no reason given",
                error => error,
            };
            return self.problem(&format!("the run failed: {error} ({})", end.code));
        }
        let mut parts = vec![ago_secs(now.duration_since(self.started))];
        if !end.model.is_empty() {
            parts.insert(0, summary(&end.model));
        }
        if let Some(usage) = &end.usage {
            let (read, written) = (
                tokens(usage.prompt_tokens.into()),
                tokens(usage.completion_tokens.into()),
            );
            parts.push(format!("{read} read, {written} written"));
        }
        if let Some(spent) = end.money {
            parts.push(money(spent));
        }
        self.begin(Kind::Note);
        let line = Line::styled(format!("{MARGIN}{}", parts.join(" \u{b7} ")), theme::DIM);
        self.above.push(shorten(&line, self.width + MARGIN.len()));
        self.last = Kind::Person;
    }

    /// Ends a run whose events stopped: its text stays, and its calls are marked as
    /// unknown.
    pub(super) fn cut_off(&mut self, now: Instant) {
        self.end_thinking(now);
        self.end_text();
        let calls = self.tools.cut_off(self.width);
        if !calls.is_empty() {
            self.begin(Kind::Tool);
            self.above.extend(calls);
        }
        self.write_todo();
    }

    fn indented(&mut self, line: Line) {
        let line = match line.spans().is_empty() {
            true => line,
            false => line.behind(&[Span::new(MARGIN, theme::PLAIN)]),
        };
        self.above.push(line);
    }

    /// Whether an empty line must precede this kind of output.
    fn is_before(&self, kind: Kind) -> bool {
        let goes_on = kind == self.last && matches!(kind, Kind::Tool | Kind::Note);
        self.last != Kind::Nothing && !goes_on
    }

    fn begin(&mut self, kind: Kind) {
        if self.is_before(kind) {
            self.above.push(Line::default());
        }
        self.last = kind;
    }

    /// The last rows of open output.
    pub(super) fn open(&self, rows: usize, now: Instant, spinner: &str) -> Vec<Line> {
        let mut open = Vec::new();
        if let Some((thought, since)) = &self.thinking {
            let took = ago_secs(now.duration_since(*since));
            open.push(Line::styled(
                format!("{spinner} thinking \u{b7} {took}"),
                theme::DIM,
            ));
            let from = thought
                .len()
                .saturating_sub(self.width * (THINKING_ROWS + 1));
            let tail = &thought[thought.ceil_char_boundary(from)..];
            let tail: Vec<Line> = tail
                .lines()
                .flat_map(|line| {
                    crabtalk_render::wrapped(&Line::styled(line, theme::DIM), self.width)
                })
                .collect();
            let first = tail.len().saturating_sub(THINKING_ROWS);
            let margin = [Span::new(MARGIN, theme::PLAIN)];
            open.extend(
                tail[first..]
                    .iter()
                    .cloned()
                    .map(|line| line.behind(&margin)),
            );
        }
        if self.speaking {
            if self.last != Kind::Text {
                open.push(Line::default());
            }
            let margin = [Span::new(MARGIN, theme::PLAIN)];
            let lines = self.markdown.open();
            open.extend(lines.into_iter().map(|line| line.behind(&margin)));
        }
        let tools = self.tools.rows(self.width, now, spinner);
        // As in the final form.
        if !tools.is_empty() && open.is_empty() && self.is_before(Kind::Tool) {
            open.push(Line::default());
        }
        open.extend(tools);
        let first = open.len().saturating_sub(rows);
        open.split_off(first)
    }
}

/// Width of text on a terminal.
fn text_width(columns: usize) -> usize {
    columns
        .saturating_sub(MARGIN.len() + 1)
        .clamp(16, MAX_COLUMNS)
}

/// A stable colour for a name.
pub(super) fn guest_style(name: &str) -> anstyle::Style {
    use anstyle::AnsiColor::{Blue, Cyan, Green, Magenta};
    let colors = [Magenta, Green, Cyan, Blue];
    let sum: usize = name.bytes().map(usize::from).sum();
    colors[sum % colors.len()].on_default().bold()
}

#[cfg(test)]
mod tests;
