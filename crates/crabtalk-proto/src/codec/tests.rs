use super::*;
use crate::{ClientMessage, Ping, SendMsg};
use proptest::prelude::*;

fn hello() -> ClientMessage {
    SendMsg {
        agent: "a".into(),
        content: "hello".into(),
        ..SendMsg::default()
    }
    .into()
}

fn frame(message: &ClientMessage) -> BytesMut {
    let mut buffer = BytesMut::new();
    encode(message, &mut buffer).expect("small");
    buffer
}

#[test]
fn reading_stops_at_the_end_of_the_frame() {
    let mut two = frame(&hello());
    two.extend_from_slice(&frame(&Ping {}.into()));
    assert_eq!(decode(&mut two).expect("first"), Some(hello()));
    assert_eq!(two, frame(&Ping {}.into()));
    let second: Option<ClientMessage> = decode(&mut two).expect("second");
    assert_eq!(second, Some(Ping {}.into()));
    assert!(matches!(end_of_file(&two), FrameError::Closed));
}

#[test]
fn end_within_a_length_is_clean() {
    let whole = frame(&hello());
    for cut in 0..whole.len() {
        let mut came = BytesMut::from(&whole[..cut]);
        assert_eq!(decode::<ClientMessage>(&mut came).expect("legal"), None);
        let error = end_of_file(&came);
        match cut.checked_sub(HEADER) {
            None => assert!(matches!(error, FrameError::Closed), "{cut}: {error}"),
            Some(came) => {
                let expected = format!(
                    "the connection ended within a frame: received {came} of {} bytes",
                    whole.len() - HEADER
                );
                assert_eq!(error.to_string(), expected);
            }
        }
    }
}

#[test]
fn length_above_the_limit_is_refused_before_its_payload() {
    let declared = MAX_FRAME + 1;
    let header = u32::try_from(declared).expect("fits").to_be_bytes();
    let error = TooLarge {
        declared,
        limit: MAX_FRAME,
    };
    let refused = split_frame(&mut BytesMut::from(&header[..]), MAX_FRAME);
    assert_eq!(refused, Err(error));
}

#[test]
fn smaller_limit_is_enforced() {
    let mut buffer = BytesMut::new();
    encode(&ClientMessage::from(Ping {}), &mut buffer).expect("short");
    let length = buffer.len() - HEADER;
    let refused = split_frame(&mut buffer.clone(), length - 1);
    let error = TooLarge {
        declared: length,
        limit: length - 1,
    };
    assert_eq!(refused, Err(error));
    let decoded = decode_within::<ClientMessage>(&mut buffer, length);
    assert_eq!(decoded.expect("short"), Some(Ping {}.into()));
}

#[test]
fn declared_length_allocates_no_memory() {
    let mut buffer = BytesMut::from(&u32::try_from(MAX_FRAME).expect("fits").to_be_bytes()[..]);
    assert_eq!(split_frame(&mut buffer, MAX_FRAME), Ok(None));
    assert!(buffer.capacity() < 64);
}

#[test]
fn limit_is_inclusive() {
    // Payload: nested headers around the content, found by measuring.
    let message = |content: usize| -> ClientMessage {
        SendMsg {
            content: "x".repeat(content),
            ..SendMsg::default()
        }
        .into()
    };
    let overhead = message(MAX_FRAME).encoded_len() - MAX_FRAME;
    let mut buffer = BytesMut::new();
    encode(&message(MAX_FRAME - overhead), &mut buffer).expect("fits exactly");
    assert_eq!(buffer.len(), HEADER + MAX_FRAME);
    assert!(
        split_frame(&mut buffer, MAX_FRAME)
            .expect("legal")
            .is_some()
    );

    let mut buffer = BytesMut::from(&b"before"[..]);
    let error = encode(&message(MAX_FRAME - overhead + 1), &mut buffer);
    assert_eq!(
        error,
        Err(TooLarge {
            declared: MAX_FRAME + 1,
            limit: MAX_FRAME
        })
    );
    assert_eq!(&buffer[..], b"before");
}

#[test]
fn malformed_payload_is_consumed() {
    let mut buffer = BytesMut::from(&[0, 0, 0, 2, 0x0a, 0xff][..]);
    buffer.extend_from_slice(&frame(&hello()));
    let error = decode::<ClientMessage>(&mut buffer).expect_err("no message");
    assert!(
        error.to_string().starts_with("malformed frame: "),
        "{error}"
    );
    assert_eq!(decode(&mut buffer).expect("next"), Some(hello()));
}

#[test]
fn unknown_variant_and_an_empty_frame_decode_to_nothing() {
    // Field 999, length-delimited, empty.
    for payload in [&[0xba, 0x3e, 0][..], &[]] {
        let mut buffer = BytesMut::new();
        buffer.put_u32(u32::try_from(payload.len()).expect("small"));
        buffer.extend_from_slice(payload);
        assert_eq!(
            decode(&mut buffer).expect("legal"),
            Some(ClientMessage { msg: None })
        );
    }
}

proptest! {
    #[test]
    fn frames_survive_every_split(texts in prop::collection::vec(".{0,40}", 1..6), step in 1..50usize) {
        let messages: Vec<ClientMessage> = texts
            .into_iter()
            .map(|content| SendMsg { content, ..SendMsg::default() }.into())
            .collect();
        let mut bytes = BytesMut::new();
        for message in &messages {
            encode(message, &mut bytes).expect("small");
        }
        let mut buffer = BytesMut::new();
        let mut decoded = Vec::<ClientMessage>::new();
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(message) = decode(&mut buffer).expect("legal") {
                decoded.push(message);
            }
        }
        prop_assert_eq!(decoded, messages);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn garbage_is_an_error_or_a_message_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut buffer = BytesMut::from(&bytes[..]);
        loop {
            let before = buffer.len();
            match decode::<ClientMessage>(&mut buffer) {
                Ok(Some(_)) | Err(FrameError::Malformed(_)) => prop_assert!(buffer.len() < before),
                Ok(None) | Err(FrameError::TooLarge(_)) => break,
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}
