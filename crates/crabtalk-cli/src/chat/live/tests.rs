//! Tests of reconnecting.

use super::patient;
use super::transcript::Transcript;
use crate::tests::Fake;
use crabtalk_client::RunNews;
use crabtalk_proto::{AttachMsg, StreamChunk, StreamEnd, StreamStart, stream_event};
use crabtalk_render::screen::{Canvas, Drawing};
use futures_util::StreamExt;
use std::io::Write;
use std::time::{Duration, Instant};

/// Pieces of an answer, and how many of them come in a second.
const PIECES: usize = 10_000;
const PER_SECOND: usize = 200;

/// The part of a core that they may cost.
const PART: f64 = 0.2;

/// Drawings in a second.
const DRAWINGS: usize = 25;

/// Counts what is written.
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What this thread has computed, however busy the machine is.
fn computed() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

fn piece(index: usize) -> String {
    match index % 200 {
        0 => "\n\n## A heading\n\n".to_owned(),
        20 => "\n\n- an item\n".to_owned(),
        21..60 if index.is_multiple_of(5) => "\n- another item ".to_owned(),
        60 => "\n\n| a | b |\n|---|---|\n".to_owned(),
        61..80 => format!("| cell {index} | `code` |\n"),
        80 => "\n\n```rust\n".to_owned(),
        81..120 if index.is_multiple_of(4) => "\n".to_owned(),
        81..120 => format!("let x{index} = "),
        120 => "\n```\n\n".to_owned(),
        _ => "some **words** ".to_owned(),
    }
}

#[test]
fn ten_thousand_pieces_at_two_hundred_a_second_cost_a_fifth_of_a_core_at_most() {
    let Some(begin) = computed() else {
        println!("SKIPPED: ten_thousand_pieces: this system does not tell what a thread computed");
        return;
    };
    let mut transcript = Transcript::new(100);
    let mut canvas = Canvas::new(Box::new(Sink(0)), true, 100);
    let now = Instant::now();
    for index in 0..PIECES {
        let content = piece(index);
        let event = stream_event::Event::Chunk(StreamChunk { content });
        transcript.event(&event.into(), now);
        if index.is_multiple_of(PER_SECOND / DRAWINGS) {
            let above = transcript.take();
            let rows = transcript.open(20, now, "*");
            let drawing = Drawing { rows, cursor: None };
            canvas.draw(&above, &drawing).unwrap();
        }
    }
    let cost = computed().unwrap() - begin;
    let took = PIECES as f64 / PER_SECOND as f64;
    let part = cost.as_secs_f64() / took;
    println!("{:.1} % of a core", 100.0 * part);
    // Holds for a build without optimizations, which is several times slower.
    assert!(part < PART, "{part}");
}

#[tokio::test]
async fn a_daemon_that_comes_back_after_a_night_is_heard_again() {
    let mut fake = Fake::start().await;
    let mut at = fake.at("chat");
    let client = patient(at.context.client().await.unwrap());
    let mut run = client.attach(AttachMsg::default());
    let start = StreamStart {
        run: 1,
        ..StreamStart::default()
    };
    fake.send(stream_event::Event::Start(start)).await;
    assert!(matches!(run.next().await, Some(Ok(RunNews::Event(_)))));
    fake.stop().await;
    assert!(matches!(run.next().await, Some(Ok(RunNews::Lost { .. }))));
    tokio::time::pause();
    let morning = async {
        tokio::time::sleep(Duration::from_secs(8 * 3600)).await;
        fake.start_again().await;
        let end = stream_event::Event::End(StreamEnd::default());
        fake.send(end).await;
    };
    let (news, ()) = futures_util::join!(run.next(), morning);
    assert_eq!(news.unwrap().unwrap(), RunNews::Back);
    let end = run.next().await.unwrap().unwrap();
    assert!(matches!(end, RunNews::Missing { .. }), "{end:?}");
}
