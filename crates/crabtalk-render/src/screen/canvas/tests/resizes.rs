//! Random sequences of resizes on an emulated terminal.

use super::emulator::{Emulator, Kind};
use super::*;
use crabtalk_testkit::Buffer;

const SIZES: [(usize, usize); 2] = [(10, 4), (200, 50)];

/// A canvas, its terminal, and the state of a chat.
struct Chat {
    out: Buffer,
    canvas: Canvas,
    terminal: Emulator,
    size: (usize, usize),
    /// Final lines given so far.
    given: usize,
    random: u64,
}

impl Chat {
    fn new(kind: Kind, seed: u64) -> Self {
        let (out, size) = (Buffer::default(), (80, 24));
        Self {
            canvas: Canvas::new(Box::new(out.clone()), false, size),
            out,
            terminal: Emulator::new(kind, size),
            size,
            given: 0,
            random: seed,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    /// Resizes the terminal up to `resizes` times before the chat notices.
    fn storm(&mut self, resizes: usize, is_wide: bool) {
        let from = self.size.0;
        for _ in 0..=self.below(resizes) {
            let [least, most] = SIZES;
            let columns = least.0 + self.below(most.0 - least.0 + 1);
            let rows = least.1 + self.below(most.1 - least.1 + 1);
            self.size = match self.below(4) {
                0 => (columns, self.size.1),
                1 => SIZES[self.below(2)],
                2 => (columns, rows),
                _ => (self.size.0, rows),
            };
            if is_wide {
                self.size.0 = 80;
            }
            self.terminal.resize(self.size);
        }
        // Several changes of the height may look like one, which makes the hidden rows uncertain.
        if resizes > 1 && self.size.0 == from {
            self.size.0 += 1;
            self.terminal.resize(self.size);
        }
        self.canvas.resize(self.size);
    }

    /// Draws new final lines and the rows; returns the drawing.
    fn draw(&mut self, lines: usize, asks: bool) -> Drawing {
        let above: Vec<Line> = (self.given..self.given + lines)
            .map(|n| Line::plain(format!("line {n} {}.", "word ".repeat(n % 20))))
            .collect();
        self.given += lines;
        let drawing = drawing(self.size, asks);
        self.canvas.draw(&above, &drawing).unwrap();
        self.take();
        drawing
    }

    fn take(&mut self) {
        self.terminal.take(&self.out.take());
    }

    /// The rows that a new terminal shows of a drawing.
    fn fresh(&self, drawing: &Drawing) -> Vec<String> {
        let out = Buffer::default();
        let mut canvas = Canvas::new(Box::new(out.clone()), false, self.size);
        canvas.draw(&[], drawing).unwrap();
        let mut terminal = Emulator::new(Kind::Returns, self.size);
        terminal.take(&out.text());
        let mut rows = terminal.screen();
        rows.truncate(drawing.rows.len());
        rows
    }

    /// Asserts that the screen ends with the drawing, with or without `debris` of earlier ones.
    fn check(&self, drawing: &Drawing, debris: bool, context: &str) {
        let screen = self.terminal.screen();
        let want = self.fresh(drawing);
        let shown = screen.iter().rposition(|row| !row.is_empty());
        let end = shown.map_or(0, |last| last + 1);
        let begin = end.saturating_sub(want.len());
        assert_eq!(screen[begin..end], want, "{context}: {screen:#?}");
        let is_clean = !screen[..begin].iter().any(|row| is_drawn(row));
        assert!(debris || is_clean, "{context}: {screen:#?}");
        let cursor = self.terminal.cursor().1;
        let row = drawing.cursor.unwrap().0 + want.len() - drawing.rows.len();
        assert_eq!(cursor, begin + row, "{context}");
    }

    /// Asserts that every final line exists once, in order.
    fn end(mut self, context: &str) {
        self.canvas.draw(&[], &Drawing::default()).unwrap();
        self.canvas.clear().unwrap();
        self.take();
        let lines = self.terminal.lines();
        let numbers = numbers(&lines);
        let want: Vec<usize> = (0..self.given).collect();
        assert!(numbers == want, "{context}: {numbers:?}");
        let whole = lines.iter().filter(|line| line.ends_with('.')).count();
        assert!(whole >= self.given, "{context}: {whole} of {}", self.given);
    }
}

/// The numbers of final lines.
fn numbers(lines: &[String]) -> Vec<usize> {
    let all = lines.iter().flat_map(|line| line.split("line ").skip(1));
    let numbers = all.map(|line| line.split(' ').next().unwrap().parse().unwrap());
    numbers.collect()
}

/// Whether a row belongs to a drawing.
fn is_drawn(row: &str) -> bool {
    row.contains(['\u{2500}', '\u{2503}', '\u{250f}', '\u{2517}', '%'])
}

/// Rows like those of the chat, as many as fit on the screen.
fn drawing((columns, height): (usize, usize), asks: bool) -> Drawing {
    let wide = columns.max(16) - 1;
    let room = height.max(6) - 1;
    let mut rows = Vec::new();
    if asks {
        rows.push(Line::plain("\u{250f}\u{2501} crab wants to use bash"));
        for n in 0..room.saturating_sub(4).min(16) {
            rows.push(Line::plain(format!(
                "\u{2503} {n} {}",
                "x".repeat(wide - 6)
            )));
        }
        rows.push(Line::plain("\u{2517}\u{2501} y allow once"));
    } else {
        rows.push(Line::plain(format!("% {}", "o".repeat(wide - 2))));
    }
    rows.push(Line::plain("\u{2500}".repeat(wide)));
    let cursor = (rows.len(), 2);
    rows.push(Line::plain("% type"));
    rows.push(Line::plain(format!("% {}", "s".repeat(wide / 2))));
    let excess = rows.len().saturating_sub(room);
    rows.drain(..excess);
    Drawing {
        rows,
        cursor: Some((cursor.0 - excess, cursor.1)),
    }
}

/// Runs a chat through 200 frames; with `is_wide` only the height changes.
fn run(kind: Kind, seed: u64, resizes: usize, is_wide: bool) {
    let mut chat = Chat::new(kind, seed);
    chat.draw(60, false);
    for step in 0..200 {
        let from = chat.size;
        chat.storm(resizes, is_wide);
        let size = chat.size;
        let context = format!("{kind:?}, seed {seed}, step {step}, {from:?} to {size:?}");
        let lines = match chat.canvas.hides_rows() {
            false if step % 3 == 0 => chat.below(4),
            _ => 0,
        };
        let drawing = chat.draw(lines, step % 40 >= 20);
        chat.check(&drawing, !is_wide || kind == Kind::Keeps, &context);
    }
    chat.end(&format!("{kind:?}, seed {seed}, {resizes}, {is_wide}"));
}

#[test]
fn storms_of_resizes_lose_no_line() {
    for kind in [Kind::Returns, Kind::Joins, Kind::Keeps] {
        for seed in 0..2 {
            run(kind, seed, 1, false);
        }
    }
}

#[test]
fn resizes_between_frames_lose_no_line() {
    for seed in 0..2 {
        run(Kind::Returns, seed, 4, false);
    }
}

#[test]
fn rows_that_return_are_overwritten() {
    for kind in [Kind::Returns, Kind::Joins] {
        for seed in 0..2 {
            run(kind, seed, 1, true);
        }
    }
}
