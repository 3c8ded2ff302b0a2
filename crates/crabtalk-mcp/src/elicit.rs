//! Presents a server's form to a person, one question per field (COMP-1).
//!
//! Invariants: the first question names the server and can be declined; answers have
//! the type of their field; an empty answer becomes the server's default.

use crate::handler::Answered;
use crabtalk_domain::tool::Caller;
use crabtalk_domain::{AskOption, AskQuestion};
use serde_json::{Map, Value, json};

/// Attempts for each field.
const MAX_TRIES: usize = 3;

/// Most fields of a form and most choices of a field, to fit a screen.
const MAX_FIELDS: usize = 20;
const MAX_CHOICES: usize = 20;

/// Longest choice, in bytes.
const MAX_CHOICE: usize = 200;

/// Longest text of the server's, in bytes.
const MAX_TEXT: usize = 2000;

const ACCEPT: &str = "Answer";
const DECLINE: &str = "Decline";

/// Asks the people of the conversation that made the call.
pub(crate) async fn ask(
    server: &str,
    message: &str,
    schema: &Value,
    caller: &dyn Caller,
) -> Answered {
    let asked = schema["properties"].as_object().map_or(0, Map::len);
    if asked > MAX_FIELDS {
        return Answered::Decline;
    }
    let fields = fields(schema);
    let first = opening(server, message, &fields);
    let Some(answer) = answer_to(caller, first).await else {
        return Answered::Decline;
    };
    if !answer.trim().eq_ignore_ascii_case(ACCEPT) {
        return Answered::Decline;
    }
    let mut content = Map::new();
    for field in &fields {
        match filled(server, field, caller).await {
            Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(answered) => return answered,
        }
    }
    Answered::Accept(Value::Object(content))
}

async fn answer_to(caller: &dyn Caller, question: AskQuestion) -> Option<String> {
    let text = question.question.clone();
    let answers = caller.ask(vec![question]).await?;
    match &answers[&text] {
        Value::String(answer) => Some(answer.clone()),
        Value::Array(chosen) => {
            let chosen: Vec<&str> = chosen.iter().filter_map(Value::as_str).collect();
            Some(chosen.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Asks for one field until the answer is valid; `None` leaves the field out.
async fn filled(
    server: &str,
    field: &Field<'_>,
    caller: &dyn Caller,
) -> Result<Option<Value>, Answered> {
    let mut wrong = String::new();
    for _ in 0..MAX_TRIES {
        let question = field.question(server, &wrong);
        let Some(answer) = answer_to(caller, question).await else {
            return Err(Answered::Cancel);
        };
        match field.read(answer.trim()) {
            Ok(value) => return Ok(value),
            Err(why) => wrong = why,
        }
    }
    Err(Answered::Cancel)
}

fn option(label: &str, description: &str) -> AskOption {
    AskOption {
        label: label.into(),
        description: description.into(),
    }
}

fn opening(server: &str, message: &str, fields: &[Field<'_>]) -> AskQuestion {
    let asked: Vec<String> = fields.iter().map(|field| cut(field.title())).collect();
    let wants = match asked.is_empty() {
        true => String::new(),
        false => format!(" (requested values: {})", asked.join(", ")),
    };
    AskQuestion {
        question: format!("The server {server} asks: {}{wants}", cut(message)),
        header: "Question".into(),
        options: vec![
            option(ACCEPT, "answer the questions that follow"),
            option(DECLINE, "send no answer to the server"),
        ],
        multi_select: false,
    }
}

/// Shortens a text to one bounded line.
fn cut(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A field of a form.
struct Field<'a> {
    name: String,
    schema: &'a Value,
    required: bool,
}

/// The form's fields, in the server's order.
fn fields(schema: &Value) -> Vec<Field<'_>> {
    let required = |name: &str| {
        let list = schema["required"].as_array();
        list.is_some_and(|list| list.iter().any(|known| known == name))
    };
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    let ordered = schema["order"].as_array().into_iter().flatten();
    let mut names: Vec<&str> = ordered.filter_map(Value::as_str).collect();
    let rest = properties.keys().map(String::as_str);
    let rest: Vec<&str> = rest.filter(|name| !names.contains(name)).collect();
    names.extend(rest);
    let field = |name: &str| {
        Some(Field {
            name: name.to_owned(),
            schema: properties.get(name)?,
            required: required(name),
        })
    };
    names.into_iter().filter_map(field).collect()
}

impl Field<'_> {
    fn title(&self) -> &str {
        self.schema["title"].as_str().unwrap_or(&self.name)
    }

    /// The values and titles of a field with choices.
    fn choices(&self) -> Vec<(String, String)> {
        let source = match self.is_list() {
            true => &self.schema["items"],
            false => self.schema,
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let titled = source["oneOf"].as_array().or(source["anyOf"].as_array());
        if let Some(titled) = titled {
            let pair = |one: &Value| (text(&one["const"]), text(&one["title"]));
            return titled.iter().map(pair).collect();
        }
        let names = source["enumNames"].as_array();
        let values = source["enum"].as_array().into_iter().flatten();
        let pair = |(at, value): (usize, &Value)| {
            let name = names.and_then(|names| names.get(at)).map(text);
            (text(value), name.unwrap_or_default())
        };
        values.enumerate().map(pair).collect()
    }

    fn is_list(&self) -> bool {
        self.schema["type"] == "array"
    }

    fn question(&self, server: &str, wrong: &str) -> AskQuestion {
        let mut text = format!("{server}: {}", cut(self.title()));
        if let Some(description) = self.schema["description"].as_str() {
            text.push_str(&format!(" ({})", cut(description)));
        }
        if let Some(default) = self.default() {
            text.push_str(&format!("; `default` is {}", cut(&default.to_string())));
        }
        if !wrong.is_empty() {
            text.push_str(&format!("; {wrong}"));
        }
        let mut options: Vec<AskOption> = match self.schema["type"].as_str() {
            Some("boolean") => vec![option("yes", ""), option("no", "")],
            _ => {
                let choices = self.choices();
                // A shortened choice could not be sent back.
                let short = choices
                    .iter()
                    .filter(|(value, _)| value.len() <= MAX_CHOICE);
                let shown = short.take(MAX_CHOICES);
                shown
                    .map(|(value, title)| option(value, &cut(title)))
                    .collect()
            }
        };
        if self.default().is_some() {
            options.push(option("default", "use the server's default"));
        } else if !self.required {
            options.push(option("skip", "send no value"));
        }
        AskQuestion {
            question: text,
            header: cut(&self.name),
            options,
            multi_select: self.is_list(),
        }
    }

    fn default(&self) -> Option<&Value> {
        self.schema.get("default").filter(|value| !value.is_null())
    }

    /// Parses an answer; an error is shown with the next attempt.
    fn read(&self, answer: &str) -> Result<Option<Value>, String> {
        if (answer.is_empty() || answer.eq_ignore_ascii_case("default"))
            && let Some(default) = self.default()
        {
            return Ok(Some(default.clone()));
        }
        if !self.required && (answer.is_empty() || answer.eq_ignore_ascii_case("skip")) {
            return Ok(None);
        }
        let choices = self.choices();
        let chosen = |word: &str| {
            let found = choices.iter().find(|(value, title)| {
                value.eq_ignore_ascii_case(word) || title.eq_ignore_ascii_case(word)
            });
            let value = found.map(|(value, _)| Value::from(value.clone()));
            value.ok_or_else(|| format!("{word:?} is not one of the choices"))
        };
        if self.is_list() {
            let words = answer
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            let list: Result<Vec<Value>, String> = words.map(chosen).collect();
            return list.map(|list| Some(list.into()));
        }
        if !choices.is_empty() {
            return chosen(answer).map(Some);
        }
        Ok(Some(match self.schema["type"].as_str() {
            Some("boolean") => match answer.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" | "1" => json!(true),
                "no" | "n" | "false" | "0" => json!(false),
                _ => return Err("answer yes or no".into()),
            },
            Some("integer") => {
                let whole: i64 = answer.parse().map_err(|_| "enter a whole number")?;
                json!(whole)
            }
            Some("number") => {
                let number: f64 = answer.parse().map_err(|_| "enter a number")?;
                if !number.is_finite() {
                    return Err("enter a number".into());
                }
                json!(number)
            }
            _ => json!(answer),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::BoxFuture;
    use std::sync::Mutex;

    /// Answers questions in order.
    struct Person(Mutex<Vec<&'static str>>, Mutex<Vec<String>>);

    impl Caller for Person {
        fn ask<'a>(&'a self, questions: Vec<AskQuestion>) -> BoxFuture<'a, Option<Value>> {
            let question = questions[0].question.clone();
            for option in &questions[0].options {
                let shown = option.label.len() + option.description.len();
                assert!(shown <= MAX_CHOICE + MAX_TEXT, "an option of {shown} bytes");
            }
            self.1.lock().expect("whole").push(question.clone());
            let mut answers = self.0.lock().expect("whole");
            let answer = (!answers.is_empty()).then(|| answers.remove(0));
            Box::pin(std::future::ready(answer.map(|a| json!({ question: a }))))
        }
    }

    async fn answered(schema: Value, answers: &[&'static str]) -> (Answered, Vec<String>) {
        let person = Person(Mutex::new(answers.to_vec()), Mutex::default());
        let answered = ask("files", "Which?", &schema, &person).await;
        let asked = person.1.lock().expect("whole").clone();
        (answered, asked)
    }

    fn form() -> Value {
        json!({"type": "object", "required": ["age"], "order": ["age", "name", "ok", "color", "tags"], "properties": {
            "name": {"type": "string", "default": "Ann"},
            "age": {"type": "integer"},
            "ok": {"type": "boolean"},
            "color": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        }})
    }

    #[tokio::test]
    async fn answers_have_the_types_of_their_fields() {
        let answers = ["answer", "many", "18", "", "yes", "Blue", "a, b"];
        let (answered, asked) = answered(form(), &answers).await;
        let Answered::Accept(content) = answered else {
            panic!("{asked:?}")
        };
        let want =
            json!({"age": 18, "name": "Ann", "ok": true, "color": "blue", "tags": ["a", "b"]});
        assert_eq!(content, want);
        assert!(
            asked[0].contains("files") && asked[0].contains("Which?"),
            "{asked:?}"
        );
        assert!(asked[2].contains("whole number"));
    }

    #[tokio::test]
    async fn declining_costs_one_answer_and_nobody_there_declines() {
        for answers in [&["Decline"][..], &["no idea"], &[]] {
            let (answered, asked) = answered(form(), answers).await;
            assert!(matches!(answered, Answered::Decline));
            assert_eq!(asked.len(), 1);
        }
    }

    #[tokio::test]
    async fn what_no_screen_shows_is_cut_or_not_asked() {
        let long = "x".repeat(1 << 20);
        let form = json!({"type": "object", "order": ["a", "b"], "properties": {
            "a": {"type": "string", "title": long, "description": long, "default": long},
            "b": {"type": "string", "enum": [long, "short"], "enumNames": [long, long]},
        }});
        let (first, asked) = answered(form, &["Answer", "default", "short"]).await;
        assert!(matches!(first, Answered::Accept(_)));
        assert_eq!(asked.len(), 3);
        for question in asked {
            assert!(question.len() < 4 * MAX_TEXT, "{} bytes", question.len());
        }
        // A form with too many fields is declined without comparing them pairwise.
        let fields = |many: usize| -> Map<String, Value> {
            let field = |at| (format!("f{at}"), json!({"type": "string"}));
            (0..many).map(field).collect()
        };
        let many = fields(50_000);
        let order: Vec<&String> = many.keys().collect();
        let form = json!({"type": "object", "order": order, "properties": many});
        let (second, asked) = answered(form, &["Answer"]).await;
        assert!(matches!(second, Answered::Decline));
        assert!(asked.is_empty(), "{asked:?}");
    }

    #[tokio::test]
    async fn an_optional_field_may_stay_out_and_endless_mistakes_cancel() {
        let (first, _) = answered(form(), &["Answer", "20", "skip", "skip", "skip", "skip"]).await;
        let Answered::Accept(content) = first else {
            panic!()
        };
        assert_eq!(content, json!({"age": 20}));
        let (second, _) = answered(form(), &["Answer", "x", "y", "z"]).await;
        assert!(matches!(second, Answered::Cancel));
    }
}
