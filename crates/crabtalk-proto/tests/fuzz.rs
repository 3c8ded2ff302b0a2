//! Frames from a peer that sends anything.

use bytes::BytesMut;
use crabtalk_proto::codec::{self, FrameError};
use crabtalk_proto::{ClientMessage, ServerMessage};
use prost::Message;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/frames");

/// Messages up to the first frame that ends the connection, and whether one did.
fn read<M: Message + Default>(bytes: &[u8], cut: usize) -> (Vec<Result<M, String>>, bool) {
    let (mut read, mut buffer) = (Vec::new(), BytesMut::new());
    let (before, after) = bytes.split_at(cut.min(bytes.len()));
    for piece in [before, after] {
        buffer.extend_from_slice(piece);
        loop {
            match codec::decode::<M>(&mut buffer) {
                Ok(Some(message)) => read.push(Ok(message)),
                Ok(None) => break,
                Err(FrameError::Malformed(error)) => read.push(Err(error.to_string())),
                Err(_) => return (read, true),
            }
        }
    }
    (read, false)
}

/// Messages round-trip, and do not depend on the network's cuts.
fn check<M: Message + Default + PartialEq + Clone>(bytes: &[u8]) {
    let (messages, ended) = read::<M>(bytes, usize::MAX);
    for cut in [bytes.len() / 3, bytes.len() / 2] {
        assert!(read::<M>(bytes, cut) == (messages.clone(), ended));
    }
    for message in messages.into_iter().flatten() {
        let mut frame = BytesMut::new();
        codec::encode(&message, &mut frame).expect("shorter than what it was read from");
        let again: Option<M> = codec::decode(&mut frame).expect("valid");
        assert!(again == Some(message) && frame.is_empty());
    }
}

#[test]
fn fuzz_frames() {
    crabtalk_testkit::fuzz(CORPUS, |bytes| {
        check::<ClientMessage>(bytes);
        check::<ServerMessage>(bytes);
    });
}
