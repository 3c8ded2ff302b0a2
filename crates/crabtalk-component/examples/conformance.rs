//! Offers what the official conformance suite of the protocol asks of a server:
//! `tests/conformance.rs` runs the suite against it. Answers are written as the JSON
//! that the suite's pages show.

use crabtalk_component::{Component, Mcp};
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// An image of one point, and a sound without one.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Delay between two messages of a tool.
const STEP: Duration = Duration::from_millis(50);

#[derive(Clone)]
struct Conformance;

type Context = RequestContext<RoleServer>;

fn made<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

fn text(said: impl Into<String>) -> Value {
    json!({"type": "text", "text": said.into()})
}

fn embedded(uri: &str, kind: &str, said: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}})
}

fn tools() -> Value {
    let plain = json!({"type": "object", "properties": {}});
    let asks = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let names = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
    ];
    let tool = |name: &str, schema: &Value| json!({"name": name, "description": "For the suite.", "inputSchema": schema});
    let mut tools: Vec<Value> = names.iter().map(|name| tool(name, &plain)).collect();
    tools.push(tool("test_sampling", &asks("prompt")));
    tools.push(tool("test_elicitation", &asks("message")));
    tools.push(tool(
        "json_schema_2020_12_tool",
        &json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "$defs": {"address": {"type": "object", "properties":
                {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
            "additionalProperties": false
        }),
    ));
    Value::Array(tools)
}

async fn call(name: &str, arguments: &Value, context: &Context) -> Result<Value, ErrorData> {
    let mixed = embedded(
        "test://mixed-content-resource",
        "application/json",
        "{\"test\":\"data\",\"value\":123}",
    );
    Ok(json!({"content": match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![json!({"type": "image", "data": PNG, "mimeType": "image/png"})],
        "test_audio_content" => vec![json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})],
        "test_embedded_resource" => vec![embedded(
            "test://embedded-resource", "text/plain", "This is an embedded resource content.")],
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}), mixed],
        "test_error_handling" => return Ok(json!({"isError": true, "content":
            [text("This tool intentionally returns an error for testing")]})),
        "json_schema_2020_12_tool" => vec![text(arguments.to_string())],
        "test_tool_with_logging" => {
            for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                tell(context, "notifications/message", json!({"level": "info", "data": said})).await?;
                tokio::time::sleep(STEP).await;
            }
            vec![text("Logged.")]
        }
        "test_tool_with_progress" => {
            let token = context.meta.get_progress_token();
            for done in [0, 50, 100] {
                let progress = json!({"progressToken": token, "progress": done, "total": 100});
                tell(context, "notifications/progress", progress).await?;
                tokio::time::sleep(STEP).await;
            }
            vec![text("Done.")]
        }
        "test_sampling" => {
            let asked = json!({"maxTokens": 100, "messages":
                [{"role": "user", "content": text(arguments["prompt"].as_str().unwrap_or_default())}]});
            let said = ask(context, "sampling/createMessage", asked).await?;
            vec![text(format!("LLM response: {said}"))]
        }
        "test_elicitation" => {
            let schema = json!({"type": "object", "required": ["username", "email"], "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"}}});
            vec![elicit(context, arguments["message"].as_str().unwrap_or_default(), schema).await?]
        }
        "test_elicitation_sep1034_defaults" => {
            let schema = json!({"type": "object", "required": [], "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true}}});
            vec![elicit(context, "Defaults", schema).await?]
        }
        "test_elicitation_sep1330_enums" => {
            let titled = json!([{"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]);
            let options = json!(["option1", "option2", "option3"]);
            let schema = json!({"type": "object", "required": [], "properties": {
                "untitledSingle": {"type": "string", "enum": options},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled}}}});
            vec![elicit(context, "Enums", schema).await?]
        }
        _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
    }}))
}

async fn tell(context: &Context, method: &str, params: Value) -> Result<(), ErrorData> {
    let told: ServerNotification = made(json!({"method": method, "params": params}))?;
    let sent = context.peer.send_notification(told).await;
    sent.map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

async fn ask(context: &Context, method: &str, params: Value) -> Result<Value, ErrorData> {
    let request: ServerRequest = made(json!({"method": method, "params": params}))?;
    let answer = context.peer.send_request(request).await;
    let answer = answer.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
    serde_json::to_value(answer).map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

async fn elicit(context: &Context, message: &str, schema: Value) -> Result<Value, ErrorData> {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let answer = ask(context, "elicitation/create", params).await?;
    Ok(text(format!("User response: {answer}")))
}

impl ServerHandler for Conformance {
    fn get_info(&self) -> ServerConfig {
        let can = json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "logging": {}, "completions": {}});
        ServerConfig::new(made(can).unwrap_or_default())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        made(json!({"tools": tools()}))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let result: CallToolResult = made(call(&params.name, &arguments, &context).await?)?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |name: &str, kind: &str| {
            json!({"uri": format!("test://{name}"), "name": name,
            "description": "For the suite.", "mimeType": kind})
        };
        made(
            json!({"resources": [resource("static-text", "text/plain"), resource("static-binary", "image/png"),
            resource("watched-resource", "text/plain")]}),
        )
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        made(
            json!({"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template",
            "mimeType": "application/json"}]}),
        )
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = params.uri.as_str();
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-binary", _) => {
                json!({"uri": uri, "mimeType": "image/png", "blob": PNG})
            }
            (_, Some(id)) => json!({"uri": uri, "mimeType": "application/json",
                "text": json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string()}),
            ("test://static-text" | "test://watched-resource", _) => {
                json!({"uri": uri, "mimeType": "text/plain",
                "text": "This is the content of the static text resource."})
            }
            _ => {
                return Err(ErrorData::resource_not_found(
                    "there is no such resource",
                    None,
                ));
            }
        };
        let result: ReadResourceResult = made(json!({"contents": [contents]}))?;
        Ok(result.into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    #[expect(deprecated, reason = "the suite's version of the protocol has it")]
    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        made(json!({"completion": {"values": ["test1", "test2"], "total": 2, "hasMore": false}}))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let takes = |name: &str, arguments: &[&str]| {
            json!({"name": name, "description": "For the suite.",
            "arguments": arguments.iter().map(|name| json!({"name": name, "description": "One.", "required": true})).collect::<Vec<_>>()})
        };
        made(
            json!({"prompts": [takes("test_simple_prompt", &[]), takes("test_prompt_with_arguments", &["arg1", "arg2"]),
            takes("test_prompt_with_embedded_resource", &["resourceUri"]), takes("test_prompt_with_image", &[])]}),
        )
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let of = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let content = match params.name.as_str() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => vec![text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                of("arg1"),
                of("arg2")
            ))],
            "test_prompt_with_embedded_resource" => vec![
                embedded(
                    &of("resourceUri"),
                    "text/plain",
                    "Embedded resource content for testing.",
                ),
                text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image" => vec![
                json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
                text("Please analyze the image above."),
            ],
            _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
        };
        let messages: Vec<Value> = content
            .into_iter()
            .map(|content| json!({"role": "user", "content": content}))
            .collect();
        let result: GetPromptResult = made(json!({"messages": messages}))?;
        Ok(result.into())
    }
}

fn main() -> ExitCode {
    let component = Component::new("conformance", "What the conformance suite asks for");
    crabtalk_component::run(Mcp::new(component, || Conformance))
}
