use crate::*;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

#[track_caller]
fn check(message: impl serde::Serialize, want: Value) {
    assert_eq!(serde_json::to_value(message).expect("it is JSON"), want);
}

#[test]
fn run_event_is_flat() {
    let event = stream_event::Event::ToolResult(ToolResultEvent {
        call_id: "c".into(),
        output: "out".into(),
        duration_ms: u64::MAX,
        images: vec![Image {
            media_type: "image/png".into(),
            data: vec![0, 255].into(),
        }],
        ..ToolResultEvent::default()
    });
    let event = StreamEvent {
        event: Some(event),
        seq: 7,
    };
    check(
        event,
        json!({
            "type": "tool_result", "seq": 7, "call_id": "c", "output": "out",
            "duration_ms": u64::MAX, "is_error": false,
            "images": [{"media_type": "image/png", "data": "AP8="}],
        }),
    );
    let empty = stream_event::Event::ToolsComplete(ToolsCompleteEvent {});
    check(
        StreamEvent::from(empty),
        json!({"type": "tools_complete", "seq": 0}),
    );
    // An event of a newer daemon has no type.
    check(StreamEvent::default(), json!({"seq": 0}));
}

#[test]
fn enums_are_names_or_unknown_numbers() {
    let settled = AskSettledEvent {
        ask_id: "1-1".into(),
        outcome: AskOutcome::TimedOut.into(),
        ..AskSettledEvent::default()
    };
    check(
        &settled,
        json!({"ask_id": "1-1", "outcome": "timed_out", "by": "", "answer": ""}),
    );
    let event = AgentEventMsg {
        kind: AgentEventKind::AskSettled.into(),
        settled: Some(settled),
        ..AgentEventMsg::default()
    };
    let value = serde_json::to_value(event).expect("it is JSON");
    assert_eq!(value["type"], "ask_settled");
    assert_eq!(value["settled"]["outcome"], "timed_out");
    assert_eq!(value["ask"], Value::Null);
    let newer = AgentEventMsg {
        kind: 999,
        ..AgentEventMsg::default()
    };
    assert_eq!(
        serde_json::to_value(newer).expect("it is JSON")["type"],
        "999"
    );
    let model = ModelInfo {
        kind: ProviderKind::Openai.into(),
        ..ModelInfo::default()
    };
    assert_eq!(
        serde_json::to_value(model).expect("it is JSON")["kind"],
        "openai"
    );
}

#[test]
fn pending_ask_is_flat() {
    let pending = PendingAsk {
        agent: "crab".into(),
        ask: Some(AskUserEvent {
            ask_id: "1-1".into(),
            ..AskUserEvent::default()
        }),
        ..PendingAsk::default()
    };
    let value = serde_json::to_value(pending).expect("it is JSON");
    assert_eq!(
        (&value["agent"], &value["ask_id"]),
        (&json!("crab"), &json!("1-1"))
    );
    assert_eq!(value["always"], Value::Null);
    assert!(value.get("ask").is_none());
}

/// Fills fields of a message at random, from the schema.
struct Random<'a> {
    file: &'a FileDescriptorProto,
    state: u64,
}

impl Random<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        // A linear congruential generator; its high bits are good enough.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.state >> 33) % limit
    }

    fn text(&mut self) -> String {
        let texts = ["", "a", "h\u{e9}\n\"", "\u{1f980}", "type", "0"];
        texts[self.below(6) as usize].to_owned()
    }

    /// The bytes of a message, nested at most `depth` times.
    fn message(&mut self, message: &DescriptorProto, depth: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let oneof = self.below(message.field.len().max(1) as u64) as usize;
        for (i, field) in message.field.iter().enumerate() {
            let in_oneof = field.oneof_index.is_some() && !field.proto3_optional();
            // A flat ask is read as a default one if it is absent.
            let is_set = match in_oneof {
                true => i == oneof,
                false => self.below(2) == 0 || message.name() == "PendingAsk",
            };
            let count = match field.label() {
                Label::Repeated => self.below(3),
                Label::Optional | Label::Required => 1,
            };
            for _ in 0..count * u64::from(is_set) {
                self.field(field, message, depth, &mut out);
            }
        }
        out
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other types are varints"
    )]
    fn field(
        &mut self,
        field: &FieldDescriptorProto,
        within: &DescriptorProto,
        depth: u32,
        out: &mut Vec<u8>,
    ) {
        let number = field.number() as u32;
        let mut sized = |bytes: &[u8]| {
            encode_key(number, WireType::LengthDelimited, out);
            encode_varint(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        };
        match field.r#type() {
            Type::String | Type::Bytes => sized(self.text().as_bytes()),
            Type::Message => {
                let name = field.type_name().rsplit('.').next().expect("a name");
                let mut all = within.nested_type.iter().chain(&self.file.message_type);
                let inner = all.find(|m| m.name() == name).expect("in the schema");
                if depth > 0 {
                    let bytes = self.message(inner, depth - 1);
                    sized(&bytes);
                }
            }
            Type::Double => {
                encode_key(number, WireType::SixtyFourBit, out);
                out.extend_from_slice(&(self.below(1_000) as f64 / 8.0).to_le_bytes());
            }
            kind => {
                encode_key(number, WireType::Varint, out);
                let max = if kind == Type::Uint64 { u64::MAX } else { 1 };
                encode_varint([0, 1, max][self.below(3) as usize], out);
            }
        }
    }
}

fn round_trip<M>(name: &str, random: &mut Random<'_>)
where
    M: Message + Default + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let mut all = random.file.message_type.iter();
    let schema = all.find(|m| m.name() == name).expect("in the schema");
    for _ in 0..20 {
        let bytes = random.message(schema, 4);
        let message = M::decode(&bytes[..]).expect("bytes of the schema");
        let json = serde_json::to_string(&message).expect("it is JSON");
        let again: M =
            serde_json::from_str(&json).unwrap_or_else(|e| panic!("{name}: {e}: {json}"));
        assert!(again == message, "{name}: {json}\n{message:?}\n{again:?}");
    }
}

#[test]
fn every_message_round_trips_through_json() {
    let root = env!("CARGO_MANIFEST_DIR");
    let schema = format!("{root}/proto/crabtalk.proto");
    let set = protox::compile([schema], [format!("{root}/proto")]).expect("the schema compiles");
    let mut random = Random {
        file: &set.file[0],
        state: 7,
    };
    macro_rules! check {
        ($($message:ident)*) => {{
            $(round_trip::<$message>(stringify!($message), &mut random);)*
        }};
    }
    for_all_messages!(check);
}

#[test]
fn partial_json_is_read_with_defaults() {
    let read: SendMsg =
        serde_json::from_str(r#"{"agent": "crab", "newer": 1}"#).expect("it is read");
    assert_eq!((read.agent.as_str(), read.content.as_str()), ("crab", ""));
    let error = serde_json::from_str::<ModelInfo>(r#"{"kind": "opnai"}"#).expect_err("unknown");
    assert!(error.to_string().starts_with("expected one of "), "{error}");
}
