//! Converts a page to Markdown.
//!
//! The page is read as a flat sequence of tags and texts, so that deep
//! nesting cannot overflow the stack. Menus, forms and scripts are omitted; the main
//! part is used if the page declares one.
//!
//! Invariant: the work is linear in the page's length.

mod writer;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, StartTag, Token, Tokenizer};
use std::ops::Range;
use url::Url;
use writer::Writer;

/// Minimum length of the main part; if it is shorter, the whole page is used.
const MIN_MAIN_CHARS: usize = 200;

/// Longest title.
const MAX_TITLE_CHARS: usize = 300;

/// The title and the text.
pub(crate) fn to_markdown(html: &str, base: &Url) -> (Option<String>, String) {
    let mut page = Page::new(base, true);
    page.read(html);
    if page.left_out.is_some() {
        // A menu that is never closed would hide the rest of the page.
        page = Page::new(base, false);
        page.read(html);
    }
    page.finish()
}

/// Elements that contain no text of the page.
const NEVER_TEXT: &str = "script style noscript template svg math iframe object canvas audio video select datalist \
    button textarea";

/// Elements that surround the text.
const AROUND: &str = "nav footer aside form dialog menu";

/// Elements that are paragraphs.
const BLOCKS: &str = "p div section article main header footer aside nav figure figcaption table dl dt dd \
    address fieldset details summary form body hgroup caption thead tbody";

/// Elements that cannot have content.
const VOID: &str = "area base br col embed hr img input link meta source track wbr";

fn is_one_of(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

struct Page<'a> {
    base: &'a Url,
    writer: Writer,
    /// Whether surrounding elements are omitted.
    skip_around: bool,
    /// The element that is being omitted, and its nesting depth.
    left_out: Option<(String, usize)>,
    in_title: bool,
    title: String,
    /// Targets of open links.
    links: Vec<Option<String>>,
    /// Number of cells in the current row of a table.
    cells: usize,
    /// The main parts, and the depth of the open ones.
    main: Vec<Range<usize>>,
    main_depth: usize,
}

impl<'a> Page<'a> {
    fn new(base: &'a Url, skip_around: bool) -> Self {
        Self {
            base,
            writer: Writer::default(),
            skip_around,
            left_out: None,
            in_title: false,
            title: String::new(),
            links: Vec::new(),
            cells: 0,
            main: Vec::new(),
            main_depth: 0,
        }
    }

    fn read(&mut self, html: &str) {
        let mut emitter = DefaultEmitter::default();
        // Without this, scripts would be parsed as tags.
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(html, emitter) {
            let Ok(token) = token;
            match token {
                Token::StartTag(tag) => {
                    let name = text(&tag.name);
                    self.start(&name, &tag);
                }
                Token::EndTag(tag) => self.end(&text(&tag.name)),
                Token::String(said) => self.said(&text(&said)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
        }
    }

    fn finish(mut self) -> (Option<String>, String) {
        let end = self.writer.len();
        if let Some(open) = self.main.last_mut()
            && self.main_depth > 0
        {
            open.end = end;
        }
        let whole = self.writer.finish();
        let main: Vec<&str> = self
            .main
            .iter()
            .filter_map(|range| whole.get(range.start.min(whole.len())..range.end.min(whole.len())))
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        let main = main.join("\n\n");
        let title: Vec<&str> = self.title.split_whitespace().collect();
        let title: String = title.join(" ").chars().take(MAX_TITLE_CHARS).collect();
        let text = match main.chars().nth(MIN_MAIN_CHARS) {
            Some(_) => main,
            None => whole.trim().to_owned(),
        };
        (Some(title).filter(|title| !title.is_empty()), text)
    }

    fn said(&mut self, text: &str) {
        if self.in_title {
            if self.title.len() < MAX_TITLE_CHARS * 4 {
                self.title.push_str(text);
            }
        } else if self.left_out.is_none() {
            self.writer.text(text);
        }
    }

    fn start(&mut self, name: &str, tag: &StartTag<()>) {
        if let Some((out, depth)) = &mut self.left_out {
            *depth += usize::from(out == name && !tag.self_closing);
            return;
        }
        let leave_out =
            is_one_of(NEVER_TEXT, name) || (self.skip_around && is_one_of(AROUND, name));
        if leave_out || tag.attributes.contains_key(&b"hidden"[..]) && !is_one_of(VOID, name) {
            if !tag.self_closing {
                self.left_out = Some((name.to_owned(), 1));
            }
            return;
        }
        let attribute = |name: &[u8]| tag.attributes.get(name).map(|value| text(value));
        let is_main = matches!(name, "main" | "article");
        if is_main {
            self.writer.block();
            if self.main_depth == 0 {
                let at = self.writer.len();
                self.main.push(at..at);
            }
            self.main_depth += 1;
        }
        match name {
            // Images may also have titles.
            "title" => self.in_title = self.title.is_empty(),
            "br" => self.writer.line(),
            "hr" => {
                self.writer.block();
                self.writer.text("---");
                self.writer.block();
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.writer.block();
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.writer.mark(&format!("{} ", "#".repeat(level)));
            }
            "strong" | "b" => self.writer.mark("**"),
            "em" | "i" => self.writer.mark("*"),
            "code" | "kbd" | "samp" | "tt" => self.writer.code(),
            "pre" | "listing" => self.writer.begin_pre(),
            "blockquote" => self.writer.begin_quote(),
            "ul" | "dir" => self.writer.begin_list(None),
            "ol" => {
                let from = attribute(b"start").and_then(|start| start.trim().parse().ok());
                self.writer.begin_list(Some(from.unwrap_or(1)));
            }
            "li" => self.writer.item(),
            "tr" => {
                self.writer.line();
                self.cells = 0;
            }
            "td" | "th" => {
                if self.cells > 0 {
                    self.writer.text(" | ");
                }
                self.cells += 1;
            }
            "a" => self.begin_link(attribute(b"href")),
            "img" => {
                let said = attribute(b"alt").unwrap_or_default();
                if !said.trim().is_empty() {
                    self.writer.text(&format!("[image: {}]", said.trim()));
                }
            }
            _ if is_one_of(BLOCKS, name) => self.writer.block(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((out, depth)) = &mut self.left_out {
            *depth -= usize::from(out == name);
            if *depth == 0 {
                self.left_out = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.writer.block(),
            "strong" | "b" => self.writer.close("**"),
            "em" | "i" => self.writer.close("*"),
            "code" | "kbd" | "samp" | "tt" => self.writer.code(),
            "pre" | "listing" => self.writer.end_pre(),
            "blockquote" => self.writer.end_quote(),
            "ul" | "ol" | "dir" => self.writer.end_list(),
            "li" | "tr" => self.writer.line(),
            "a" => self.end_link(),
            _ if is_one_of(BLOCKS, name) => self.writer.block(),
            _ => {}
        }
        if matches!(name, "main" | "article") && self.main_depth > 0 {
            self.main_depth -= 1;
            let end = self.writer.len();
            if let Some(open) = self.main.last_mut()
                && self.main_depth == 0
            {
                open.end = end;
            }
        }
    }

    fn begin_link(&mut self, href: Option<String>) {
        // A link inside a link ends the outer one, as in browsers.
        self.end_link();
        let target = href.and_then(|href| self.base.join(href.trim()).ok());
        let target = target.filter(|to| matches!(to.scheme(), "http" | "https" | "mailto"));
        // Omits links to the page itself.
        let target = target
            .filter(|to| to[..url::Position::AfterQuery] != self.base[..url::Position::AfterQuery]);
        if target.is_some() {
            self.writer.mark("[");
        }
        self.links.push(target.map(String::from));
    }

    fn end_link(&mut self) {
        if let Some(Some(target)) = self.links.pop() {
            self.writer.close_link(&target);
        }
    }
}

fn text(bytes: &HtmlString) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
