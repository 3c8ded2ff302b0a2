use super::*;
use crate::decode::{Broken, Chunks, Decode as _};
use crabtalk_domain::Usage;
use crabtalk_domain::model::{Chunk, Response};
use proptest::prelude::*;

fn read<'a>(events: impl IntoIterator<Item = &'a str>) -> Result<Response, Broken> {
    let mut decoder = Decoder::default();
    let mut out = Chunks::default();
    let mut response = Response::default();
    for event in events {
        let read = decoder.event(b"", event.as_bytes(), &mut out);
        for chunk in out.drain() {
            if let Chunk::ToolCallStart { index, .. } | Chunk::ToolCallArguments { index, .. } =
                &chunk
            {
                let begun = response.tool_calls.len() as u32;
                assert!(*index <= begun, "call {index} after {begun} calls");
            }
            response.push(chunk);
        }
        read?;
    }
    response.stop = decoder.stop()?;
    Ok(response)
}

#[test]
fn usage_is_read_in_all_forms() {
    let usage = |prompt, completion, hit, miss| {
        Some(Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            cache_hit_tokens: hit,
            cache_miss_tokens: miss,
            reasoning_tokens: None,
        })
    };
    for (event, want) in [
        (
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
            usage(3, 2, None, None),
        ),
        (
            r#"{"choices":[{"delta":{},"usage":{"prompt_tokens":3}}],"usage":null}"#,
            usage(3, 0, None, None),
        ),
        (
            r#"{"usage":{"prompt_tokens":3.0,"completion_tokens":null}}"#,
            usage(3, 0, None, None),
        ),
        (
            r#"{"usage":{"prompt_tokens":3,"prompt_cache_hit_tokens":1,"prompt_cache_miss_tokens":2}}"#,
            usage(3, 0, Some(1), Some(2)),
        ),
        (
            r#"{"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}"#,
            usage(3, 0, Some(1), Some(2)),
        ),
        (
            r#"{"usage":{"prompt_tokens":3,"prompt_tokens_details":null}}"#,
            usage(3, 0, None, None),
        ),
        (r#"{"choices":null,"error":null,"usage":null}"#, None),
    ] {
        assert_eq!(read([event]).expect(event).usage, want, "{event}");
    }
}

/// Call fragments with any combination of index, id and name.
fn fragment() -> impl Strategy<Value = String> {
    let index = prop_oneof![Just(""), Just("\"index\":0,"), Just("\"index\":3,")];
    let id = prop_oneof![
        Just(""),
        Just("\"id\":\"a\","),
        Just("\"id\":\"b\","),
        Just("\"id\":null,")
    ];
    let name = prop_oneof![Just(""), Just("\"name\":\"t\","), Just("\"name\":null,")];
    let arguments = prop_oneof![
        Just("\"\""),
        Just("\"{}\""),
        Just("{\"a\":1}"),
        Just("null")
    ];
    (index, id, name, arguments).prop_map(|(index, id, name, arguments)| {
        format!(
            "{{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{index}{id}\"function\":{{{name}\
             \"arguments\":{arguments}}}}}]}}}}]}}"
        )
    })
}

proptest! {
    #[test]
    fn calls_are_dense_and_have_ids_however_they_are_numbered(
        events in prop::collection::vec(fragment(), 0..8),
    ) {
        if let Ok(response) = read(events.iter().map(String::as_str).chain(["[DONE]"])) {
            for call in response.tool_calls {
                prop_assert!(!call.id.is_empty() && !call.name.is_empty());
            }
        }
    }
}
