use super::*;
use crate::decode::{Chunks, Decode as _};
use crabtalk_domain::model::Response;
use proptest::prelude::*;

#[test]
fn versions_decide_what_is_asked_for() {
    for (id, thinking, proofs) in [
        ("gemini-1.5-pro", false, false),
        ("gemini-2.0-flash-001", false, false),
        ("gemini-2.5-flash", true, false),
        ("models/gemini-2.5-pro", true, false),
        ("gemini-3-pro-preview", true, true),
        ("gemini-3.1-pro", true, true),
        ("gemini-flash-latest", true, true),
        ("gemma-3-27b-it", false, false),
    ] {
        assert_eq!((thinks(id), wants_proofs(id)), (thinking, proofs), "{id}");
    }
}

/// Events with fields that fit, do not fit, or are missing.
fn event() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(r#"{"text":"x"}"#),
        Just(r#"{"text":"x","thought":true,"thoughtSignature":"s"}"#),
        Just(r#"{"text":"","thoughtSignature":"s"}"#),
        Just(r#"{"functionCall":{"name":"t","args":{"a":1}},"thoughtSignature":"s"}"#),
        Just(r#"{"functionCall":{"id":"i","name":"t"}}"#),
        Just(r#"{"functionCall":{}}"#),
        Just(r#"{"inlineData":{}}"#),
        Just("null"),
    ];
    let finish = prop_oneof![
        Just(""),
        Just(r#","finishReason":"STOP""#),
        Just(r#","finishReason":null"#),
        Just(r#","finishReason":"MALFORMED_FUNCTION_CALL""#),
    ];
    let rest = prop_oneof![
        Just(""),
        Just(
            r#","usageMetadata":{"promptTokenCount":18446744073709551615,"toolUsePromptTokenCount":1}"#
        ),
        Just(r#","usageMetadata":null"#),
        Just(r#","promptFeedback":{"blockReason":"SAFETY"}"#),
        Just(r#","error":7"#),
    ];
    (prop::collection::vec(part, 0..3), finish, rest).prop_map(|(parts, finish, rest)| {
        let parts = parts.join(",");
        format!("{{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}}{finish}}}]{rest}}}")
    })
}

proptest! {
    #[test]
    fn nothing_a_server_sends_makes_it_panic(events in prop::collection::vec(event(), 0..6)) {
        let mut decoder = Decoder::default();
        let mut out = Chunks::default();
        let mut response = Response::default();
        for event in &events {
            let read = decoder.event(b"", event.as_bytes(), &mut out);
            out.drain().for_each(|chunk| response.push(chunk));
            if read.is_err() {
                break;
            }
        }
        for call in response.tool_calls {
            prop_assert!(!call.id.is_empty() && !call.name.is_empty());
        }
    }
}
