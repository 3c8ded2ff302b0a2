//! The runtime's tools `set_title`, `todo`, `ask_user` and `delegate`.

use super::{CallContext, Effect, Outcome, deferred, delegate, todo};
use crabtalk_domain::tool::{Invocation, ToolOutput, ToolSpec};
use crabtalk_domain::{AskOption, AskQuestion, Permission};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// The tool that asks questions.
pub(crate) const ASK_USER: &str = "ask_user";

/// Maximum characters of a title: one line of a list.
const MAX_TITLE_CHARS: usize = 100;

/// Maximum questions of an ask and options of a question: one screen.
const MAX_QUESTIONS: usize = 10;
const MAX_OPTIONS: usize = 20;

static SPECS: LazyLock<Vec<Arc<ToolSpec>>> = LazyLock::new(|| {
    let spec = |name: &str, description: &str, parameters: Value| {
        Arc::new(ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
            default_permission: Permission::Allow,
        })
    };
    vec![
        spec(
            ASK_USER,
            "Ask the user one or more questions and wait for the answers. Use it for decisions \
             that the user should make. Options are suggestions; the user may give any answer.",
            json!({
                "type": "object",
                "properties": {
                    "questions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "question": {"type": "string"},
                                "header": {"type": "string", "description": "a heading of one or two words"},
                                "options": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "properties": {
                                            "label": {"type": "string"},
                                            "description": {"type": "string"}
                                        },
                                        "required": ["label"]
                                    }
                                },
                                "multi_select": {"type": "boolean"}
                            },
                            "required": ["question"]
                        }
                    }
                },
                "required": ["questions"]
            }),
        ),
        spec(
            "set_title",
            "Give this conversation a short title that helps the user to find it again.",
            json!({
                "type": "object",
                "properties": {"title": {"type": "string"}},
                "required": ["title"]
            }),
        ),
        todo::spec(),
    ]
});

pub(super) fn specs() -> Vec<Arc<ToolSpec>> {
    SPECS.clone()
}

pub(super) fn is_builtin(name: &str) -> bool {
    let own = [delegate::NAME, deferred::SEARCH, deferred::CALL];
    own.contains(&name) || SPECS.iter().any(|spec| spec.name == name)
}

pub(super) async fn call(context: &CallContext, call: &Invocation) -> Outcome {
    match call.name.as_str() {
        "set_title" => set_title(&call.arguments),
        todo::NAME => todo::call(&call.arguments).into(),
        delegate::NAME => delegate::call(context, &call.arguments).await.into(),
        ASK_USER => {
            let asked = ask_user(context, &call.arguments);
            context.pauses.pause(&call.call_id, asked).await.into()
        }
        deferred::SEARCH => context.tools.search(&call.arguments).into(),
        name => {
            let error = format!("the tool {name} was removed during this step");
            ToolOutput::error(error).into()
        }
    }
}

fn set_title(arguments: &Value) -> Outcome {
    let title = arguments["title"].as_str().unwrap_or_default();
    let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().count() > MAX_TITLE_CHARS {
        let error = format!("invalid title: give 1 to {MAX_TITLE_CHARS} characters");
        return ToolOutput::error(error).into();
    }
    let output = ToolOutput::ok(format!("the title is now {title:?}"));
    Outcome {
        output,
        effect: Some(Effect::Title(title)),
    }
}

async fn ask_user(context: &CallContext, arguments: &Value) -> ToolOutput {
    let questions = match questions(arguments) {
        Ok(questions) => questions,
        Err(error) => return ToolOutput::error(error),
    };
    if context.standing.unattended {
        return ToolOutput::error("no user can answer: this run was not started by a person");
    }
    match ask(context, questions).await {
        Some(answers) => ToolOutput::ok(answers.to_string()),
        None => ToolOutput::error("the question was withdrawn"),
    }
}

/// Asks the people behind the run, in its stream; returns `None` for an unattended run
/// or a withdrawn question.
pub(super) async fn ask(context: &CallContext, questions: Vec<AskQuestion>) -> Option<Value> {
    if context.standing.unattended {
        return None;
    }
    let delegate = context.delegate();
    context.rt.ask(&context.audience, questions, delegate).await
}

/// Parses the arguments leniently: models also send a single question without a list.
fn questions(arguments: &Value) -> Result<Vec<AskQuestion>, String> {
    let list = match &arguments["questions"] {
        Value::Array(list) => list.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![arguments]
        }
    };
    let questions = list.into_iter().map(question).collect::<Option<Vec<_>>>();
    let questions = questions.ok_or("every question needs a string under \"question\"")?;
    if questions.is_empty() || questions.len() > MAX_QUESTIONS {
        return Err(format!("ask 1 to {MAX_QUESTIONS} questions at once"));
    }
    if questions.iter().any(|q| q.options.len() > MAX_OPTIONS) {
        return Err(format!("offer at most {MAX_OPTIONS} options"));
    }
    Ok(questions)
}

fn question(value: &Value) -> Option<AskQuestion> {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let asked = if value.is_string() {
        text(value)
    } else {
        text(&value["question"])
    };
    let option = |value: &Value| {
        let label = if value.is_string() {
            text(value)
        } else {
            text(&value["label"])
        };
        let description = text(&value["description"]);
        (!label.is_empty()).then_some(AskOption { label, description })
    };
    (!asked.is_empty()).then(|| AskQuestion {
        question: asked,
        header: text(&value["header"]),
        options: value["options"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(option)
            .collect(),
        multi_select: value["multi_select"].as_bool().unwrap_or_default(),
    })
}
