//! Compiles the schema without `protoc`, and derives from it the messages' JSON and the list of answers.

use prost_build::Config;
use std::fmt::Write as _;
use std::path::Path;

/// The protobuf package of the schema.
const PACKAGE: &str = "crabtalk.protocol";

/// Not derived: the envelopes, which exist on the wire only, and the messages that `json.rs` implements by hand.
const BY_HAND: [&str; 3] = ["ClientMessage", "ServerMessage", "StreamEvent"];

/// Messages without JSON.
const ENVELOPES: [&str; 2] = ["ClientMessage", "ServerMessage"];

/// Differences of the JSON from the schema.
const FIELDS: [(&str, &str); 2] = [
    ("PendingAsk.ask", "flatten"),
    ("AgentEventMsg.kind", "rename = \"type\""),
];

/// Large and rare members of the envelopes. Without boxes every delta of 24 bytes would take a kilobyte.
const BOXED: [&str; 6] = [
    "ServerMessage.msg.agent_event",
    "ServerMessage.msg.agent_info",
    "ServerMessage.msg.cron_info",
    "ServerMessage.msg.cron_run",
    "ServerMessage.msg.stats",
    "StreamEvent.event.ask_user",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/crabtalk.proto");
    let descriptors = protox::compile(["proto/crabtalk.proto"], ["proto"])?;
    let mut config = Config::new();
    // Extensions pass through; no copy is needed to hold them.
    config.bytes(["."]).btree_map(["."]);
    for (field, how) in FIELDS {
        config.field_attribute(format!(".{PACKAGE}.{field}"), format!("#[serde({how})]"));
    }
    for member in BOXED {
        config.boxed(format!(".{PACKAGE}.{member}"));
    }
    config.enum_attribute(
        format!(".{PACKAGE}.StreamEvent.event"),
        "#[derive(serde::Serialize, serde::Deserialize)] #[serde(tag = \"type\", rename_all = \"snake_case\")]",
    );
    let (mut names, mut answers, mut messages) = (String::new(), String::new(), String::new());
    for file in &descriptors.file {
        for message in &file.message_type {
            if !ENVELOPES.contains(&message.name()) {
                writeln!(messages, "    {}", message.name())?;
            }
            derive_json(&mut config, message);
            if message.name() == "ServerMessage" {
                write_answers(&mut answers, message)?;
            }
        }
        for of in &file.enum_type {
            write_names(&mut names, of)?;
        }
    }
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("names.rs"), names)?;
    std::fs::write(Path::new(&out).join("answers.rs"), answers)?;
    // For the tests.
    let messages =
        format!("macro_rules! for_all_messages {{ ($do:ident) => {{ $do! {{\n{messages}}} }} }}\n");
    std::fs::write(Path::new(&out).join("messages.rs"), messages)?;
    config.compile_fds(descriptors)?;
    Ok(())
}

/// Derives a message as an object with the schema's names.
fn derive_json(config: &mut Config, message: &prost_types::DescriptorProto) {
    use prost_types::field_descriptor_proto::Type;
    let name = message.name();
    if BY_HAND.contains(&name) {
        return;
    }
    let path = format!(".{PACKAGE}.{name}");
    config.message_attribute(
        &path,
        "#[derive(serde::Serialize, serde::Deserialize)] #[serde(default)]",
    );
    for field in &message.field {
        let kind = field.r#type();
        let with = if kind == Type::Enum {
            snake_case(field.type_name().rsplit('.').next().unwrap_or_default())
        } else if kind == Type::Bytes {
            "base64".to_owned()
        } else {
            continue;
        };
        let attribute = format!("#[serde(with = \"crate::json::{with}\")]");
        config.field_attribute(format!("{path}.{}", field.name()), attribute);
    }
}

/// Lists the members of the envelope but the error, for `convert.rs`.
fn write_answers(out: &mut String, envelope: &prost_types::DescriptorProto) -> std::fmt::Result {
    writeln!(out, "wrap_responses! {{")?;
    for field in envelope
        .field
        .iter()
        .filter(|field| field.name() != "error")
    {
        let response = match field.type_name().rsplit('.').next() {
            None | Some("") => "Bytes",
            Some(message) => message,
        };
        let name = field.name();
        let is_boxed = BOXED.contains(&&*format!("ServerMessage.msg.{name}"));
        let boxed = if is_boxed { " boxed" } else { "" };
        writeln!(out, "    {}({response}){boxed};", camel_case(name))?;
    }
    writeln!(out, "}}")
}

/// Writes a module with the names of an enum's values, without the prefix that makes them unique in the
/// package.
fn write_names(out: &mut String, of: &prost_types::EnumDescriptorProto) -> std::fmt::Result {
    let module = snake_case(of.name());
    let prefix = format!("{}_", module.to_ascii_uppercase());
    writeln!(out, "enum_names! {{ {module}")?;
    for value in &of.value {
        let name = value.name();
        let name = name
            .strip_prefix(&prefix)
            .unwrap_or(name)
            .to_ascii_lowercase();
        writeln!(out, "    {} {name:?}", value.number())?;
    }
    writeln!(out, "}}")
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn camel_case(name: &str) -> String {
    let mut out = String::new();
    for word in name.split('_') {
        let (first, rest) = word.split_at(1);
        out.push_str(&first.to_ascii_uppercase());
        out.push_str(rest);
    }
    out
}
