use super::*;
use crate::decode::{Chunks, Decode as _};
use proptest::prelude::*;

/// Events of every type with fields that fit, do not fit, or are missing.
fn event() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("message_start"),
        Just("content_block_start"),
        Just("content_block_delta"),
        Just("content_block_stop"),
        Just("message_delta"),
        Just("message_stop"),
        Just("ping"),
        Just("error"),
        Just("new"),
    ];
    let inner = prop_oneof![
        Just(""),
        Just(",\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}"),
        Just(",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}"),
        Just(",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":1}"),
        Just(",\"delta\":null"),
        Just(",\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"t\",\"input\":{}}"),
        Just(",\"content_block\":{\"type\":\"tool_use\"}"),
        Just(",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"x\",\"signature\":\"\"}"),
        Just(",\"message\":{\"usage\":{\"input_tokens\":1}}"),
        Just(",\"error\":{\"type\":\"overloaded_error\"}"),
        Just(",\"error\":7"),
    ];
    (kind, 0u32..3, inner).prop_map(|(kind, index, inner)| {
        format!("{{\"type\":\"{kind}\",\"index\":{index}{inner}}}")
    })
}

proptest! {
    #[test]
    fn nothing_a_server_sends_makes_it_panic(events in prop::collection::vec(event(), 0..8)) {
        let mut decoder = Decoder::default();
        let mut out = Chunks::default();
        let mut response = crabtalk_domain::model::Response::default();
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
