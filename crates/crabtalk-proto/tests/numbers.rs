//! The schema's numbers and types are fixed: clients in the field speak them.
//!
//! `numbers.txt` lists them. A line that changes there breaks those clients; a
//! new field is a new number.

use crabtalk_proto as proto;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto};

const NUMBERS: &str = include_str!("numbers.txt");

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is left is named as in the schema"
)]
fn type_name(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let named = field
        .type_name()
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_owned();
    let name = match field.r#type() {
        Type::Message | Type::Enum => named,
        simple => format!("{simple:?}").to_lowercase(),
    };
    let is_map = message.nested_type.iter().any(|nested| {
        nested.name() == name
            && nested
                .options
                .as_ref()
                .is_some_and(|options| options.map_entry())
    });
    match field.label() {
        _ if is_map => "map<string, string>".into(),
        Label::Repeated => format!("{name}[]"),
        _ if field.proto3_optional() => format!("{name}?"),
        _ => name,
    }
}

fn line(head: String, mut fields: Vec<(i32, String)>) -> String {
    fields.sort();
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(number, rest)| format!("{number} {rest}"))
        .collect();
    format!("{head}: {}", fields.join("; "))
        .trim_end()
        .to_owned()
}

fn message_lines(message: &DescriptorProto) -> Vec<String> {
    let name = message.name();
    let (mut members, mut fields) = (Vec::new(), Vec::new());
    for field in &message.field {
        let entry = (
            field.number(),
            format!("{}: {}", field.name(), type_name(field, message)),
        );
        let in_oneof = field.oneof_index.is_some() && !field.proto3_optional();
        if in_oneof {
            members.push(entry)
        } else {
            fields.push(entry)
        }
    }
    let mut lines = vec![line(format!("message {name}"), fields)];
    if !members.is_empty() {
        lines.push(line(
            format!("oneof {name}.{}", message.oneof_decl[0].name()),
            members,
        ));
    }
    lines
}

/// Values go by a prefix, so that they stay unique within the package.
fn enum_line(of: &EnumDescriptorProto) -> String {
    let mut prefix = String::new();
    for c in of.name().chars() {
        if c.is_uppercase() && !prefix.is_empty() {
            prefix.push('_');
        }
        prefix.push(c.to_ascii_uppercase());
    }
    let name = |name: &str| match name.strip_prefix(&format!("{prefix}_")) {
        Some("UNKNOWN") | None => name.to_owned(),
        Some(short) => short.to_owned(),
    };
    let values = of
        .value
        .iter()
        .map(|value| (value.number(), name(value.name())))
        .collect();
    line(format!("enum {}", of.name()), values)
}

#[test]
fn schema_keeps_its_numbers() {
    let root = env!("CARGO_MANIFEST_DIR");
    let schema = format!("{root}/proto/crabtalk.proto");
    let set = protox::compile([schema], [format!("{root}/proto")]).expect("the schema compiles");
    let file = &set.file[0];
    assert_eq!(file.package(), "crabtalk.protocol");
    let mut lines: Vec<_> = file.message_type.iter().flat_map(message_lines).collect();
    lines.extend(file.enum_type.iter().map(enum_line));
    lines.sort();
    for (got, expected) in lines.iter().zip(NUMBERS.lines()) {
        assert_eq!(got, expected);
    }
    assert_eq!(lines.len(), NUMBERS.lines().count());
}

#[test]
fn types_encode_the_schemas_bytes() {
    // Each: tag byte(s) as field << 3 | wire type, then the value.
    let stream = proto::StreamMsg {
        agent: "a".into(),
        content: "b".into(),
        sender: Some("c".into()),
        cwd: Some("d".into()),
        guest: Some("e".into()),
        tool_choice: Some("f".into()),
        request_id: Some("g".into()),
        model: Some("h".into()),
        mode: None,
        images: Vec::new(),
    };
    let body = b"\x0a\x01a\x12\x01b\x22\x01c\x2a\x01d\x32\x01e\x3a\x01f\x92\x03\x01g\xba\x03\x01h";
    assert_eq!(stream.encode_to_vec(), body);
    let envelope = proto::ClientMessage::from(stream).encode_to_vec();
    assert_eq!(envelope[..2], [0x12, body.len() as u8]);
    assert_eq!(envelope[2..], body[..]);

    let event = proto::stream_event::Event::Chunk(proto::StreamChunk {
        content: "x".into(),
    });
    let event = proto::StreamEvent {
        event: Some(event),
        seq: 5,
    };
    let bytes = proto::ServerMessage::from(event).encode_to_vec();
    assert_eq!(bytes, b"\x22\x08\x12\x03\x0a\x01x\x90\x03\x05");

    let hello = proto::HelloMsg {
        protocol_version: 1,
        ..Default::default()
    };
    assert_eq!(
        proto::ClientMessage::from(hello).encode_to_vec(),
        b"\xc2\x0c\x02\x08\x01"
    );
    assert_eq!(proto::ServerMessage::from(()).encode_to_vec(), b"\x12\x00");
}
