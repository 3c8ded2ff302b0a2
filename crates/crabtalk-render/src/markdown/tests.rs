use super::*;
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

fn shown(text: &str, width: usize) -> String {
    texts(&render(text, width)).join("\n")
}

/// Renders the text by one parse.
fn at_once(text: &str, width: usize) -> Vec<Line> {
    Writer::new(text, width, false, None).write().lines
}

#[test]
fn blocks_are_rendered() {
    let text = "# Title\n\nSome **bold** and `code`.\n\n- one\n- two\n  - deep\n\n  more of two\n\n\
                3. three\n4. four\n\n> said\n> twice\n\n---\n\n```rust\nfn a() {}\n\n    b\n```\n\
                see [the docs](https://a.b/c) and <https://d.e>\n";
    assert_eq!(
        shown(text, 60),
        "Title\n\nSome bold and code.\n\n\u{2022} one\n\u{2022} two\n  \u{2022} deep\n\n  more of two\n\n\
         3. three\n4. four\n\n\u{2502} said\n\u{2502} twice\n\n\
         \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\
         \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\
         \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\
         \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\n\n  \
         fn a() {}\n\n      b\n\nsee the docs (https://a.b/c) and https://d.e"
            .replace("\n\n      b", "\n  \n      b")
    );
}

#[test]
fn a_table_fits_the_width_or_becomes_lines() {
    let text = "| name | what it does |\n|---|---:|\n| a | words that are long |\n| b | 2 |\n";
    assert_eq!(
        shown(text, 60),
        "name \u{2502}        what it does\n\
         \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{253c}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\
         \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\
         \u{2500}\u{2500}\u{2500}\u{2500}\n\
         a    \u{2502} words that are long\nb    \u{2502}                   2"
    );
    let narrow = shown(text, 20);
    assert!(narrow.contains("\u{2502}    words that\n"), "{narrow}");
    let wide = format!(
        "|{}\n|{}\n|{}\n",
        "head|".repeat(9),
        "---|".repeat(9),
        "a cell|".repeat(9)
    );
    let records = shown(&wide, 30);
    assert!(
        records.starts_with("head: a cell\nhead: a cell\n"),
        "{records}"
    );
}

#[test]
fn complete_lines_are_final_at_once() {
    let mut markdown = Markdown::new(40);
    let steps = [
        ("# Ti", vec![]),
        ("tle\n", vec!["Title"]),
        ("text\nmore\n", vec![]),
        ("\n", vec!["", "text", "more"]),
        ("- a\n", vec![]),
        ("- b\n", vec!["", "\u{2022} a"]),
        ("\n- c\n", vec!["\u{2022} b"]),
        ("```\n", vec!["", "\u{2022} c"]),
        ("x\n", vec!["", "  x"]),
        ("y\n", vec!["  y"]),
        ("``", vec![]),
        ("`\nend", vec![]),
    ];
    for (piece, want) in steps {
        assert_eq!(texts(&markdown.push(piece)), want, "{piece:?}");
    }
    assert_eq!(texts(&markdown.open()), ["", "end"]);
    assert_eq!(texts(&markdown.finish()), ["", "end"]);
    assert!(markdown.is_empty());
}

#[test]
fn open_code_block_shows_its_last_line() {
    let mut markdown = Markdown::new(40);
    markdown.push("```\na\n");
    for (piece, want) in [("``", vec![]), ("x", vec!["  ``x"])] {
        markdown.push(piece);
        assert_eq!(texts(&markdown.open()), want, "{piece}");
    }
}

#[test]
fn endless_lines_and_blocks_cost_bounded_work() {
    let mut markdown = Markdown::new(80);
    let begin = std::time::Instant::now();
    let mut lines = Vec::new();
    for _ in 0..4_000 {
        lines.extend(markdown.push("> a quote that never ends and goes on\n"));
    }
    lines.extend(markdown.push(&"word ".repeat(100_000)));
    lines.extend(markdown.finish());
    assert!(lines.len() > 6_000);
    // Detects quadratic work on any machine.
    assert!(begin.elapsed() < std::time::Duration::from_secs(60));
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let text = "a &#27;[2J \u{1b}]0;x\u{7}\n\n```\n\u{9b}31m\r\n```\n\n| \u{1b} |\n|--|\n[x](a\u{1b}b)\n\
                <b\u{1b}>\n\n\u{250f}\u{2501} crab wants\n\u{2503} bash";
    for line in render(text, 40) {
        let mut written = String::new();
        line.write_on(&mut written, false, crate::theme::Ground::Unknown);
        assert!(!written.contains(|c: char| c.is_control()), "{written:?}");
        assert!(
            !written.contains(['\u{250f}', '\u{2501}', '\u{2503}']),
            "{written:?}"
        );
    }
}

/// Pieces of Markdown that are combined in all orders.
const PIECES: &[&str] = &[
    "word",
    " ",
    "\n",
    "\n\n",
    "# ",
    "- ",
    "  - ",
    "1. ",
    "2) ",
    "* ",
    "> ",
    "```",
    "```rust\n",
    "~~~",
    "| a | b |\n",
    "|---|:-:|\n",
    "**",
    "*",
    "`",
    "[a](http://x)",
    "![i](j)",
    "---\n",
    "===\n",
    "    ",
    "\t",
    "<div>",
    "</div>\n",
    "<!-- ",
    " -->",
    "http://a.b",
    "\\",
    "&amp;",
    "漢字",
    "👩‍🚀",
    "\u{1b}[2J",
    "\r\n",
    "\u{202e}",
    "\u{2503}",
    "fn main() {}\n",
    "- [ ] ",
    "10. ",
    "a long line of words that has to be wrapped\n",
];

fn markdown() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn chunks_do_not_change_the_lines(
        text in markdown(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        width in 16usize..100,
    ) {
        let whole = render(&text, width);
        let mut places: Vec<usize> = cuts
            .iter()
            .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
            .collect();
        places.sort_unstable();
        let mut markdown = Markdown::new(width);
        let (mut lines, mut from) = (Vec::new(), 0);
        for place in places {
            lines.extend(markdown.push(&text[from..place]));
            from = place;
            markdown.open();
        }
        lines.extend(markdown.push(&text[from..]));
        lines.extend(markdown.finish());
        prop_assert_eq!(texts(&lines), texts(&whole));
    }

    #[test]
    fn streamed_lines_equal_one_parse(text in markdown(), width in 16usize..100) {
        let text = clean(&text).into_owned() + "\n";
        prop_assert_eq!(texts(&render(&text, width)), texts(&at_once(&text, width)));
    }

    #[test]
    fn no_line_is_wider_than_asked_for(text in ".{0,200}|[\\x00-\\x7f\u{4e00}-\u{4eff}\u{1f600}-\u{1f64f}]{0,200}", width in 16usize..60) {
        for line in render(&text, width) {
            prop_assert!(line.text().width() <= width, "{line:?}");
            prop_assert!(!line.text().contains(|c: char| c.is_control()));
        }
    }
}

/// Bytes that stay open, summed over the pieces of an answer with this many parts.
fn open_bytes(part: &str, parts: usize) -> usize {
    let mut markdown = Markdown::new(80);
    let mut open = 0;
    for _ in 0..parts {
        for piece in part.split_inclusive(' ') {
            markdown.push(piece);
            open += markdown.pending.len() + markdown.partial.len();
        }
    }
    open
}

#[test]
fn parsing_work_per_chunk_is_bounded() {
    let page = "## A heading\n\nSome **bold** words and `code`, and\nanother line of them.\n\n- an item\n  - below it\n- another one\n\n\
                1. first\n2. second\n\n| a | b |\n|---|---|\n| one | two |\n\n```rust\nfn main() {}\n```\n\n> said\n\n";
    let (short, long) = (open_bytes(page, 10), open_bytes(page, 200));
    assert!(long <= 21 * short, "{short} and {long}");
    // Endless blocks are split.
    for endless in [
        "| a row | of one table |\n",
        "words of one paragraph\n",
        "on one line ",
    ] {
        let most = 2 * MAX_BLOCK_BYTES + MAX_LINE_BYTES;
        let parts = 8 * MAX_BLOCK_BYTES / endless.len();
        let pieces = parts * endless.split_inclusive(' ').count();
        let all = open_bytes(endless, parts);
        assert!(all <= pieces * most, "{endless:?}: {}", all / pieces);
    }
}
