//! Compiles the schema without `protoc`, so that a fresh machine can build, and
//! derives the messages' JSON from it, so that both have the same names, and the
//! list of answers.

use prost_build::Config;
use std::fmt::Write as _;
use std::path::Path;

/// The protobuf package of the schema.
const PACKAGE: &str = "crabtalk.protocol";

/// Not derived: the envelopes, which are on the wire only, and what `json.rs`
/// writes by hand.
const BY_HAND: [&str; 3] = ["ClientMessage", "ServerMessage", "StreamEvent"];

/// What JSON has that the schema does not say: fields that stand beside their
/// message's own, and one name.
const FIELDS: [(&str, &str); 2] = [
    ("PendingAsk.ask", "flatten"),
    ("AgentEventMsg.kind", "rename = \"type\""),
];

/// Members of an envelope that are large and rare. Without boxes every piece of an
/// answer, of 24 bytes, would be handed on as a kilobyte.
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
        "#[derive(serde::Serialize)] #[serde(tag = \"type\", rename_all = \"snake_case\")]",
    );
    let (mut names, mut answers) = (String::new(), String::new());
    for file in &descriptors.file {
        for message in &file.message_type {
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
    config.compile_fds(descriptors)?;
    Ok(())
}

/// A message as an object with the schema's names.
fn derive_json(config: &mut Config, message: &prost_types::DescriptorProto) {
    use prost_types::field_descriptor_proto::Type;
    let name = message.name();
    if BY_HAND.contains(&name) {
        return;
    }
    let path = format!(".{PACKAGE}.{name}");
    config.message_attribute(&path, "#[derive(serde::Serialize)]");
    for field in &message.field {
        let kind = field.r#type();
        let with = if kind == Type::Enum {
            snake_case(field.type_name().rsplit('.').next().unwrap_or_default())
        } else if kind == Type::Bytes {
            "base64".to_owned()
        } else {
            continue;
        };
        let attribute = format!("#[serde(serialize_with = \"crate::json::{with}\")]");
        config.field_attribute(format!("{path}.{}", field.name()), attribute);
    }
}

/// The members of the envelope, for `convert.rs`, but for the error.
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

/// How a value of an enum is called: without the prefix that makes it unique
/// in the package.
fn write_names(out: &mut String, of: &prost_types::EnumDescriptorProto) -> std::fmt::Result {
    let function = snake_case(of.name());
    let prefix = format!("{}_", function.to_ascii_uppercase());
    writeln!(
        out,
        "/// The name of a `{}`; the number of one that is not known.",
        of.name()
    )?;
    writeln!(
        out,
        "pub(crate) fn {function}<S: serde::Serializer>(value: &i32, out: S) -> Result<S::Ok, S::Error> {{"
    )?;
    writeln!(out, "    match *value {{")?;
    for value in &of.value {
        let name = value.name();
        let name = name
            .strip_prefix(&prefix)
            .unwrap_or(name)
            .to_ascii_lowercase();
        writeln!(
            out,
            "        {} => out.serialize_str({name:?}),",
            value.number()
        )?;
    }
    writeln!(out, "        other => out.collect_str(&other),")?;
    writeln!(out, "    }}\n}}\n")
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
