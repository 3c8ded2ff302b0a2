use super::*;

fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
    KeyEvent::new(code, modifiers)
}

/// Types: `^x` is with Control, `~x` with Alt, `<` and `>` are Left and Right, `|` is Up.
fn typed(composer: &mut Composer, keys: &str) {
    let mut keys = keys.chars();
    while let Some(c) = keys.next() {
        let event = match c {
            '^' => key(KeyCode::Char(keys.next().unwrap()), KeyModifiers::CONTROL),
            '~' => key(KeyCode::Char(keys.next().unwrap()), KeyModifiers::ALT),
            '<' => key(KeyCode::Left, KeyModifiers::NONE),
            '>' => key(KeyCode::Right, KeyModifiers::NONE),
            '|' => key(KeyCode::Up, KeyModifiers::NONE),
            '\u{8}' => key(KeyCode::Backspace, KeyModifiers::NONE),
            c => key(KeyCode::Char(c), KeyModifiers::NONE),
        };
        assert!(composer.key(event));
    }
}

#[test]
fn keys_edit_as_in_a_shell() {
    for (keys, want) in [
        ("hello^a<oh ", "oh hello"),
        ("one two^w", "one "),
        ("one two^u", ""),
        ("one two<<<^k^a^y", "two" /* moved to the front */),
        ("one two~b~d", "one "),
        ("ab^jcd", "ab\ncd"),
        ("ab^t", "ba"),
        ("word^w^_", "word"),
        ("\u{6f22}\u{5b57}\u{8}x", "\u{6f22}x"),
    ] {
        let mut composer = Composer::default();
        typed(&mut composer, keys);
        let text = composer.text().to_owned();
        assert!(text.starts_with(want), "{keys:?}: {text:?}");
    }
}

#[test]
fn long_pastes_are_labels_and_are_sent_whole() {
    let mut composer = Composer::default();
    composer.paste("a\r\nb");
    assert_eq!(composer.text(), "a\nb");
    let long = "line\n".repeat(30);
    composer.paste(&long);
    assert_eq!(composer.text(), "a\nb[paste 1: 30 lines]");
    typed(&mut composer, "!");
    assert_eq!(composer.take(), format!("a\nb{long}!"));
    // Deleting a label deletes its text.
    composer.paste(&long);
    typed(&mut composer, "\u{8}");
    assert_eq!(composer.take(), "");
}

#[test]
fn history_can_be_walked_and_searched() {
    let lines = ["cargo test", "git status", "cargo check"].map(str::to_owned);
    let mut composer = Composer::with_history(lines.to_vec());
    typed(&mut composer, "new||");
    assert_eq!(composer.text(), "git status");
    composer.key(key(KeyCode::Down, KeyModifiers::NONE));
    composer.key(key(KeyCode::Down, KeyModifiers::NONE));
    assert_eq!(composer.text(), "new", "what was being written comes back");
    typed(&mut composer, "^rcargo^r");
    assert!(composer.is_searching());
    assert_eq!(composer.text(), "cargo test");
    let (rows, _) = composer.rows(60, "");
    assert_eq!(rows[0].text(), "search cargo\u{203a} cargo test");
    composer.key(key(KeyCode::Enter, KeyModifiers::NONE));
    assert!(!composer.is_searching());
    assert_eq!(composer.take(), "cargo test");
}

#[test]
fn rows_fit_the_terminal_and_the_cursor_is_placed() {
    let mut composer = Composer::default();
    typed(&mut composer, "\u{6f22}\u{5b57}abcdef");
    let (rows, cursor) = composer.rows(9, "");
    let texts: Vec<String> = rows.iter().map(Line::text).collect();
    assert_eq!(texts, ["\u{203a} \u{6f22}\u{5b57}ab", "  cdef"]);
    assert_eq!(cursor, (1, 6));
    let many = "x\n".repeat(20);
    composer.set(&many);
    let (rows, cursor) = composer.rows(20, "");
    assert_eq!((rows.len(), cursor), (MAX_ROWS, (MAX_ROWS - 1, 2)));
}

#[test]
fn marked_bytes_are_shown_as_unknown() {
    let mut composer = Composer::default();
    composer.set("see @foo, please");
    composer.mark(std::iter::once(4..8).collect());
    let unknown = |width| {
        let (rows, _) = composer.rows(width, "");
        let spans: Vec<Span> = rows.iter().flat_map(|row| row.spans().to_vec()).collect();
        let unknown = spans.iter().filter(|span| span.style() == theme::UNKNOWN);
        unknown
            .map(|span| span.text().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(unknown(40), ["@foo"]);
    assert_eq!(unknown(9), ["@f", "oo"], "a mark goes on in the next row");
    composer.mark(Vec::new());
    assert_eq!(composer.rows(40, "").0[0].spans().len(), 2);
}

#[test]
fn composer_shows_control_characters() {
    let mut composer = Composer::default();
    composer.paste("a\x1b[2Jb");
    let (rows, _) = composer.rows(60, "");
    assert_eq!(rows[0].text(), "\u{203a} a<U+001B>[2Jb");
    assert_eq!(composer.take(), "a\x1b[2Jb");
}

/// Types with vi keys: `~` is Esc.
fn vi(keys: &str) -> Composer {
    let mut composer = Composer::with_history(vec!["before".to_owned()]).with_vi(true);
    for c in keys.chars() {
        let code = match c {
            '~' => KeyCode::Esc,
            '\n' => KeyCode::Enter,
            c => KeyCode::Char(c),
        };
        let modifiers = match c {
            '\n' => KeyModifiers::ALT,
            _ => KeyModifiers::NONE,
        };
        composer.key(key(code, modifiers));
    }
    composer
}

#[test]
fn vi_keys_edit() {
    // `|` marks the cursor.
    for (keys, want) in [
        ("hello~", "hell|o"),
        ("hello~0iX", "X|hello"),
        ("hello~IX", "X|hello"),
        ("hello~0aX", "hX|ello"),
        ("hello~0AX", "helloX|"),
        ("one\ntwo~kox", "one\nx|\ntwo"),
        ("one~Ox", "x|\none"),
        ("one two three~0w", "one |two three"),
        ("one two three~02w", "one two |three"),
        ("one two three~b", "one two |three"),
        ("one two three~bb", "one |two three"),
        ("one two~0e", "on|e two"),
        ("one, two~0ww", "one, |two"),
        ("one two~0$", "one tw|o"),
        ("one two~hh", "one |two"),
        ("one two~0ll", "on|e two"),
        ("one two~0x", "|ne two"),
        ("one two~03x", "| two"),
        ("one two~0dw", "|two"),
        ("one two three~0d2w", "|three"),
        ("one two~0cwX", "X| two"),
        ("one two~02lcwX", "onX| two"),
        ("one\ntwo~k0dw", "|\ntwo"),
        ("one two~bdb", "|two"),
        ("one two~0D", "|"),
        ("one two~bC!", "one !|"),
        ("one\ntwo\nthree~kdd", "one\n|three"),
        ("one\ntwo~dd", "|one"),
        ("one\ntwo~ddp", "one\n|two"),
        ("one\ntwo~yyP", "one\n|two\ntwo"),
        ("one\ntwo~ccX", "one\nX|"),
        ("ab~0xp", "b|a"),
        ("one two~0ywP", "one| one two"),
        ("one two~0dwu", "|one two"),
        ("one~a two~u", "one|"),
        ("one~uu", "|"),
        ("one~dq", "on|e"),
        ("one~q", "on|e"),
        ("one~d~x", "o|n"),
        ("~k", "befor|e"),
        ("new~kj", "ne|w"),
        (
            "\u{6f22}\u{5b57} \u{e9}t\u{e9}~0wx",
            "\u{6f22}\u{5b57} |t\u{e9}",
        ),
        ("~dwxpuXDdd", "|"),
    ] {
        let composer = vi(keys);
        let shown = format!(
            "{}|{}",
            composer.before_cursor(),
            &composer.text()[composer.before_cursor().len()..]
        );
        assert_eq!(shown, want, "{keys:?}");
    }
}

#[test]
fn sending_returns_to_insert_mode() {
    let mut composer = vi("one~");
    assert!(!composer.takes_escape(), "another Esc interrupts");
    assert_eq!(composer.rows(20, "").0[0].text(), "\u{2039} one");
    assert_eq!(composer.take(), "one");
    assert!(composer.takes_escape());
    typed(&mut composer, "two^u^y");
    assert_eq!(
        composer.text(),
        "two",
        "keys of everybody hold while inserting"
    );
}
