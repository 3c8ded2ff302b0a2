//! Streams of providers that send anything.

use crate::bedrock::Frames;
use crate::decode::{Broken, Chunks};
use crate::random::Random;
use crate::sse::{Decoder, Event};
use crate::stream::Format;
use crabtalk_domain::model::Chunk;
use std::sync::Arc;

/// An event, copied: its name and its data.
type Seen = (Vec<u8>, Vec<u8>);

fn copied(event: &Event<'_>) -> Seen {
    (event.name.to_vec(), event.data.to_vec())
}

fn corpus(name: &str) -> String {
    format!("{}/src/corpus/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn lines(pieces: &[&[u8]]) -> Vec<Seen> {
    let (mut decoder, mut seen) = (Decoder::new(), Vec::new());
    let mut drain = |decoder: &mut Decoder| {
        while let Some(event) = decoder.next().expect("shorter than the limit") {
            seen.push(copied(&event));
        }
    };
    for piece in pieces {
        decoder.push(piece);
        drain(&mut decoder);
    }
    decoder.finish();
    drain(&mut decoder);
    seen
}

fn frames(pieces: &[&[u8]]) -> (Vec<Seen>, Option<String>) {
    let (mut decoder, mut seen) = (Frames::default(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(event)) => seen.push(copied(&event)),
                Ok(None) => break,
                Err(broken) => return (seen, Some(format!("{broken:?}"))),
            }
        }
    }
    (seen, None)
}

/// What a format makes of events, by the short way or by reading each.
fn read(mut format: Format, events: &[Seen], short: bool) -> (Vec<Chunk>, Option<String>) {
    let mut out = Chunks::new(Arc::new(Random::new(1)));
    for (name, data) in events {
        let event = Event { name, data };
        let read: Result<(), Broken> = if short {
            format.read(&event, &mut out)
        } else {
            format.parse(&event, &mut out)
        };
        if let Err(broken) = read {
            return (out.drain().collect(), Some(format!("{broken:?}")));
        }
    }
    (out.drain().collect(), None)
}

/// Calls are numbered densely, whatever a provider numbers.
fn numbered(chunks: &[Chunk]) {
    let mut begun = 0;
    for chunk in chunks {
        if let Chunk::ToolCallStart { index, .. } = chunk {
            assert_eq!(*index, begun, "{chunks:?}");
            begun += 1;
        } else if let Chunk::ToolCallArguments { index, .. } = chunk {
            assert!(*index < begun, "{chunks:?}");
        }
    }
}

fn understood(events: &[Seen]) {
    for format in [
        Format::of::<crate::openai::Decoder>,
        Format::of::<crate::anthropic::Decoder>,
        Format::of::<crate::google::Decoder>,
        Format::of::<crate::bedrock::Decoder>,
    ] {
        let (chunks, broken) = read(format(), events, true);
        numbered(&chunks);
        assert_eq!(read(format(), events, false), (chunks, broken));
    }
}

/// Neither where the network cut the bytes nor the short way makes a
/// difference, and nothing makes a decoder fall over.
#[test]
fn fuzz_event_streams() {
    crabtalk_testkit::fuzz(corpus("sse"), |bytes| {
        let events = lines(&[bytes]);
        let (before, after) = bytes.split_at(bytes.len() / 2);
        assert_eq!(lines(&[before, after]), events);
        let single: Vec<&[u8]> = bytes.chunks(7).collect();
        assert_eq!(lines(&single), events);
        understood(&events);
    });
}

/// The same for Amazon's frames; behind their checksums lies what a format
/// reads.
#[test]
fn fuzz_amazon_frames() {
    crabtalk_testkit::fuzz(corpus("frames"), |bytes| {
        let (events, broken) = frames(&[bytes]);
        let (before, after) = bytes.split_at(bytes.len() / 2);
        assert_eq!(frames(&[before, after]), (events.clone(), broken));
        understood(&events);
        // A change hardly ever passes the checksums: what it would say is read
        // without them.
        let parts = bytes.split(|byte| *byte == b'{').skip(1);
        let events: Vec<Seen> = parts
            .map(|part| (b"contentBlockDelta".to_vec(), [b"{", part].concat()))
            .collect();
        understood(&events);
    });
}
