mod emulator;
mod resizes;

use super::*;
use crabtalk_testkit::Buffer;

fn drawing(rows: &[&str], cursor: Option<(usize, usize)>) -> Drawing {
    Drawing {
        rows: rows.iter().map(Line::plain).collect(),
        cursor,
    }
}

#[test]
fn unchanged_rows_are_not_redrawn() {
    let out = Buffer::default();
    let mut canvas = Canvas::new(Box::new(out.clone()), true, (80, 24));
    let first = drawing(&["one", "two"], Some((1, 2)));
    canvas.draw(&[], &first).unwrap();
    let drawn = out.text();
    assert!(drawn.contains("\x1b[Kone\r\n\x1b[Ktwo"), "{drawn:?}");
    canvas.draw(&[], &first).unwrap();
    assert_eq!(out.text(), drawn);
    canvas
        .draw(&[], &drawing(&["one", "2"], Some((1, 1))))
        .unwrap();
    let more = out.text()[drawn.len()..].to_owned();
    assert!(more.contains("\x1b[1A\r\x1b[?7l\r\n\x1b[K2"), "{more:?}");
    assert!(!more.contains("one"), "{more:?}");
}

#[test]
fn final_lines_are_written_once() {
    let out = Buffer::default();
    let mut canvas = Canvas::new(Box::new(out.clone()), false, (80, 24));
    canvas.draw(&[], &drawing(&["a", "b", "c"], None)).unwrap();
    let before = out.text().len();
    canvas
        .draw(&[Line::plain("said")], &drawing(&["a"], None))
        .unwrap();
    let more = out.text()[before..].to_owned();
    assert!(
        more.contains("\x1b[2A\r\x1b[Ksaid\r\n\x1b[?7l\x1b[K\x1b[C\x1b[J\ra"),
        "{more:?}"
    );
}

#[test]
fn wide_final_line_wraps() {
    let out = Buffer::default();
    let mut canvas = Canvas::new(Box::new(out.clone()), false, (40, 24));
    canvas
        .draw(&[], &drawing(&["a", "b", "c", "d"], None))
        .unwrap();
    let before = out.text().len();
    let above = [60, 80, 40].map(|width| Line::plain("x".repeat(width)));
    canvas.draw(&above, &drawing(&["a"], None)).unwrap();
    let more = out.text()[before..].to_owned();
    let [some, two, one] = [60, 80, 40].map(|width| "x".repeat(width));
    assert!(
        more.contains(&format!(
            "\x1b[K{some}\x1b[K\r\n\x1b[K{two}\r\n\x1b[K{one}\r\n\x1b[?7l"
        )),
        "{more:?}"
    );
    // Five rows and one below exceed the former number of rows.
    assert!(!more.contains("\x1b[J"), "{more:?}");
}
