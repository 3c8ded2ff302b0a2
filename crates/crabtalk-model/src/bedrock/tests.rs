use super::*;
use crate::decode::Broken;
use jiff::Timestamp;
use proptest::prelude::*;

const HOST: &str = "bedrock-runtime.eu-west-1.amazonaws.com";
const PATH: &str = "/model/eu.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn signed(key: &str) -> Vec<(&'static str, String)> {
    let now: Timestamp = "2015-08-30T12:36:00Z".parse().expect("a time");
    let credentials = Credentials::read(key).expect("an access key");
    credentials.sign(HOST, PATH, b"{\"messages\":[]}", now)
}

/// Expected signatures come from Amazon's own library.
#[test]
fn requests_are_signed_as_amazon_signs_them() {
    let scope = "Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request";
    let date = ("x-amz-date", "20150830T123600Z".to_owned());
    let authorization = |names: &str, signature: &str| {
        let text =
            format!("AWS4-HMAC-SHA256 {scope}, SignedHeaders={names}, Signature={signature}");
        ("authorization", text)
    };
    assert_eq!(
        signed(&format!("AKIDEXAMPLE:{SECRET}")),
        [
            date.clone(),
            authorization(
                "content-type;host;x-amz-date",
                "3f7f247e458ea34348d1fbeb1024b747bac50ece32ac747a1d9b26ba92fcfe97",
            ),
        ]
    );
    assert_eq!(
        signed(&format!("AKIDEXAMPLE:{SECRET}:TOKEN/+==")),
        [
            date,
            authorization(
                "content-type;host;x-amz-date;x-amz-security-token",
                "6184636e6d06dffb786ab3014505d42eb35e398dc033a2ef3480d9319552d0c2",
            ),
            ("x-amz-security-token", "TOKEN/+==".to_owned()),
        ]
    );
}

#[test]
fn bearer_key_is_sent_unsigned() {
    for key in ["", "ABSKQmVkcm9jaw==", ":", "id:", ":secret"] {
        assert!(Credentials::read(key).is_none(), "{key}");
    }
    let secrets: Vec<_> = Credentials::read("id:secret:a:b")
        .expect("an access key")
        .secrets()
        .collect();
    assert_eq!(secrets, ["secret", "a:b"]);
}

#[test]
fn region_is_read_from_the_host() {
    for (host, region) in [
        (HOST, "eu-west-1"),
        ("bedrock-runtime-fips.us-west-2.amazonaws.com", "us-west-2"),
        (
            "vpce-1.bedrock-runtime.ap-south-1.vpce.amazonaws.com",
            "ap-south-1",
        ),
        ("127.0.0.1:1", "us-east-1"),
    ] {
        assert_eq!(sign::region(host), region, "{host}");
    }
}

/// A frame with the given text headers.
fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&(value.len() as u16).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let mut out = ((16 + head.len() + payload.len()) as u32)
        .to_be_bytes()
        .to_vec();
    out.extend_from_slice(&(head.len() as u32).to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

fn event(name: &str, payload: &str) -> Vec<u8> {
    frame(
        &[(":message-type", "event"), (":event-type", name)],
        payload.as_bytes(),
    )
}

fn drain(frames: &mut Frames, out: &mut Vec<(String, String)>) -> Result<(), Broken> {
    while let Some(event) = frames.next()? {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        out.push((text(event.name), text(event.data)));
    }
    Ok(())
}

/// A frame that Amazon's own library accepts, with headers of every type.
#[test]
fn amazon_frame_is_read() {
    let bytes = include_bytes!("frame.bin");
    let mut frames = Frames::default();
    frames.push(bytes);
    let mut got = Vec::new();
    drain(&mut frames, &mut got).expect("a good frame");
    assert_eq!(got, [("messageStop".to_owned(), "{\"a\":1}".to_owned())]);
}

#[test]
fn exceptions_and_nonsense_are_told_apart() {
    let exception = frame(
        &[
            (":message-type", "exception"),
            (":exception-type", "throttlingException"),
        ],
        br#"{"message":"slow down"}"#,
    );
    let error = frame(
        &[
            (":message-type", "error"),
            (":error-code", "InternalError"),
            (":error-message", "oops"),
        ],
        b"",
    );
    let mut flipped = event("x", "{}");
    *flipped.last_mut().expect("not empty") ^= 1;
    let mut short = 5u32.to_be_bytes().to_vec();
    short.extend_from_slice(&9u32.to_be_bytes());
    short.extend_from_slice(&crc32fast::hash(&short).to_be_bytes());
    let mut endless = u32::MAX.to_be_bytes().to_vec();
    endless.extend_from_slice(&9u32.to_be_bytes());
    endless.extend_from_slice(&crc32fast::hash(&endless).to_be_bytes());
    for (bytes, want) in [
        (exception, "slow down"),
        (error, "oops"),
        (flipped, "checksum"),
        (short, "lengths"),
        (endless, "TooLong"),
        (b"<html>Welcome</html>".to_vec(), "not an event stream"),
    ] {
        let mut frames = Frames::default();
        frames.push(&bytes);
        let broken = frames.next().expect_err(want);
        assert!(format!("{broken:?}").contains(want), "{broken:?}");
    }
}

proptest! {
    #[test]
    fn frames_do_not_depend_on_where_the_network_splits(
        payloads in prop::collection::vec("[a-z]{0,40}", 1..5),
        cuts in prop::collection::vec(1usize..60, 1..20),
    ) {
        let bytes: Vec<u8> = payloads.iter().flat_map(|p| event("e", p)).collect();
        let mut frames = Frames::default();
        let mut got = Vec::new();
        let mut rest = bytes.as_slice();
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let at = (*cuts.next().expect("it cycles")).min(rest.len());
            frames.push(&rest[..at]);
            drain(&mut frames, &mut got).expect("good frames");
            rest = &rest[at..];
        }
        let want: Vec<_> = payloads.into_iter().map(|p| ("e".to_owned(), p)).collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut frames = Frames::default();
        frames.push(&bytes);
        drop(drain(&mut frames, &mut Vec::new()));
        // The same bytes as the headers of a frame with valid checksums.
        let mut out = ((16 + bytes.len()) as u32).to_be_bytes().to_vec();
        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out.extend_from_slice(&bytes);
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        let mut frames = Frames::default();
        frames.push(&out);
        drop(drain(&mut frames, &mut Vec::new()));
    }
}
