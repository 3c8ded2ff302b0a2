use super::*;
use crate::decode::Chunks;
use crate::random::Random;
use crate::sse::Event;
use crate::stream::Format;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// What a decoder makes of events, with the short cut or without.
fn whole(data: &str) -> Event<'_> {
    let data = data.as_bytes();
    Event { name: b"", data }
}

fn read(mut format: Format, events: &[String], short: bool) -> (Vec<Chunk>, bool) {
    let mut out = Chunks::new(Arc::new(Random::new(1)));
    let mut chunks = Vec::new();
    for event in events {
        let read = if short {
            format.read(&whole(event), &mut out)
        } else {
            format.parse(&whole(event), &mut out)
        };
        chunks.extend(out.drain());
        if read.is_err() {
            return (chunks, false);
        }
    }
    (chunks, true)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" token".to_owned()),
        Just("assistant".to_owned()),
        Just(":".to_owned()),
        Just("m".to_owned()),
        Just("a \"quoted\" \\ \n\u{e9}\u{1f980}".to_owned()),
        "[a-z\", :]{0,6}",
    ]
}

fn openai_event() -> impl Strategy<Value = String> {
    let field = prop_oneof![Just("content"), Just("reasoning"), Just("refusal")];
    let reason = prop_oneof![4 => Just("null"), 1 => Just("\"stop\"")];
    (field, text(), reason, prop_oneof![Just("m"), Just("n")]).prop_map(
        |(field, text, reason, model)| {
            let text = json!(text);
            format!(
                "{{\"model\":\"{model}\",\"choices\":[{{\"delta\":{{\"role\":\"assistant\",\
                 \"{field}\":{text}}},\"finish_reason\":{reason}}}]}}"
            )
        },
    )
}

fn anthropic_event() -> impl Strategy<Value = String> {
    (
        prop_oneof![Just("text"), Just("thinking"), Just("signature")],
        text(),
    )
        .prop_map(|(field, text)| {
            json!({"type": "content_block_delta", "index": 0,
                   "delta": {"type": format!("{field}_delta"), field: text}})
            .to_string()
        })
}

proptest! {
    #[test]
    fn the_short_cut_gives_what_reading_gives(
        events in prop::collection::vec(openai_event(), 0..20),
        others in prop::collection::vec(anthropic_event(), 0..20),
    ) {
        let openai = Format::of::<crate::openai::Decoder>;
        prop_assert_eq!(read(openai(), &events, true), read(openai(), &events, false));
        let anthropic = Format::of::<crate::anthropic::Decoder>;
        prop_assert_eq!(read(anthropic(), &others, true), read(anthropic(), &others, false));
    }
}

#[test]
fn it_is_taken_from_the_second_event_on() {
    let event = |text: &str| format!("{{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}");
    let mut template = Template::default();
    assert_eq!(template.apply(event("a").as_bytes()), None);
    template.learn(event("a").as_bytes(), &Chunk::Text("a".into()));
    for (raw, want) in [
        ("bc", Some("bc")),
        ("\\n\\u00e9", Some("\n\u{e9}")),
        ("x\\", None),
        ("x\"},{\"y\":\"z", None),
        ("\\q", None),
        ("", None),
    ] {
        let got = template.apply(event(raw).as_bytes());
        assert_eq!(got, want.map(|text| Chunk::Text(text.into())), "{raw}");
    }
    assert_eq!(template.apply(b"{\"choices\":[]}"), None);
}

#[test]
fn a_text_that_stands_in_the_event_twice_teaches_nothing() {
    let mut template = Template::default();
    template.learn(
        b"{\"model\":\"a\",\"content\":\"a\"}",
        &Chunk::Text("a".into()),
    );
    assert_eq!(template.apply(b"{\"model\":\"a\",\"content\":\"b\"}"), None);
}
