//! Random streams from providers.

use crate::bedrock::Frames;
use crate::decode::{Chunks, Decode};
use crate::sse::{Decoder, Event};
use crabtalk_domain::model::Chunk;

fn corpus(name: &str) -> String {
    format!("{}/src/corpus/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn lines(pieces: &[&[u8]]) -> Vec<Event> {
    let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
    let mut drain = |decoder: &mut Decoder| {
        while let Some(event) = decoder.next().expect("shorter than the limit") {
            seen.push(event);
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

fn frames(pieces: &[&[u8]]) -> (Vec<Event>, Option<String>) {
    let (mut decoder, mut seen) = (Frames::default(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(event)) => seen.push(event),
                Ok(None) => break,
                Err(broken) => return (seen, Some(format!("{broken:?}"))),
            }
        }
    }
    (seen, None)
}

fn decode(mut decoder: impl Decode, events: &[Event]) -> Vec<Chunk> {
    let mut out = Chunks::default();
    for event in events {
        if decoder.event(&event.name, &event.data, &mut out).is_err() {
            break;
        }
    }
    out.drain().collect()
}

/// Asserts that calls are numbered densely.
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

fn understood(events: &[Event]) {
    numbered(&decode(crate::openai::Decoder::default(), events));
    numbered(&decode(crate::anthropic::Decoder::default(), events));
    numbered(&decode(crate::google::Decoder::default(), events));
    numbered(&decode(crate::bedrock::Decoder::default(), events));
}

/// Events do not depend on how the network splits them, and no decoder panics.
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

/// The same for Amazon's frames, whose payload a decoder
/// reads.
#[test]
fn fuzz_amazon_frames() {
    crabtalk_testkit::fuzz(corpus("frames"), |bytes| {
        let (events, broken) = frames(&[bytes]);
        let (before, after) = bytes.split_at(bytes.len() / 2);
        assert_eq!(frames(&[before, after]), (events.clone(), broken));
        understood(&events);
        // A mutation rarely passes the checksums, so the payloads are also decoded
        // without them.
        let parts = bytes.split(|byte| *byte == b'{').skip(1);
        let events: Vec<Event> = parts
            .map(|part| Event {
                name: b"contentBlockDelta".to_vec(),
                data: [b"{", part].concat(),
            })
            .collect();
        understood(&events);
    });
}
