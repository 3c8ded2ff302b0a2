//! Parses the answers of people (RUN-7).

use super::{Answer, FOR_CONVERSATION};
use crabtalk_domain::{Ask, AskKind, AskQuestion};
use serde_json::{Map, Value};

/// The refusal of "Allow always" where it is not offered.
const NOT_OFFERED: &str = "\"Allow always\" is not offered here; \"Allow once\" allows this call, and \
     a rule in the agent's file allows more; the question still waits";

/// The refusal of "Allow prefix" where it is not offered.
const NO_PREFIX: &str = "\"Allow prefix\" is not offered here, because no prefix of the call is safe \
     to allow; \"Allow once\" allows this call; the question still waits";

/// Parses a reply; the error lists the valid replies.
pub(super) fn parse(ask: &Ask, content: &str) -> Result<Answer, String> {
    let content = content.trim();
    if content.is_empty() {
        return Err("the reply is empty; the question still waits".into());
    }
    match ask.kind {
        AskKind::Approval => {
            let answer = approval(content)?;
            if answer == Answer::AllowAlways && ask.always.is_none() {
                return Err(NOT_OFFERED.into());
            }
            let prefix = ask.always.as_ref().map(|rule| rule.prefix.as_str());
            if answer == Answer::AllowPrefix && prefix.is_none_or(str::is_empty) {
                return Err(NO_PREFIX.into());
            }
            let offered = |label: &str| {
                let mut options = ask.questions.iter().flat_map(|q| &q.options);
                options.any(|option| option.label == label)
            };
            if answer == Answer::AllowConversation && !offered(FOR_CONVERSATION) {
                return Err(format!(
                    "{FOR_CONVERSATION:?} is not offered here; \"Allow once\" allows this call; \
                     the question still waits"
                ));
            }
            Ok(answer)
        }
        AskKind::Question => questions(&ask.questions, content).map(Answer::Questions),
    }
}

fn approval(content: &str) -> Result<Answer, String> {
    let lower = content.to_lowercase();
    match lower.as_str() {
        "allow once" | "1" | "y" | "yes" => return Ok(Answer::AllowOnce),
        "allow always" | "2" => return Ok(Answer::AllowAlways),
        "allow prefix" | "4" => return Ok(Answer::AllowPrefix),
        "allow for this conversation" | "5" | "c" => return Ok(Answer::AllowConversation),
        "deny" | "3" | "n" | "no" => return Ok(Answer::Deny(String::new())),
        _ => {}
    }
    match content.split_once(':') {
        Some((word, reason)) if word.trim().eq_ignore_ascii_case("deny") => {
            Ok(Answer::Deny(reason.trim().to_owned()))
        }
        Some(_) | None => Err("answer \"Allow once\" (1, y), \"Allow always\" (2) or \
             \"Deny\" (3, n; \"Deny: reason\" tells the agent why); the call still waits"
            .into()),
    }
}

fn questions(questions: &[AskQuestion], content: &str) -> Result<Value, String> {
    if let Ok(Value::Object(given)) = serde_json::from_str::<Value>(content) {
        return by_name(questions, &given);
    }
    match questions {
        [only] => Ok(Value::Object(Map::from_iter([(
            only.question.clone(),
            one(only, content),
        )]))),
        several => Err(format!(
            "there are {} questions: answer with a JSON object of question -> answer(s), such as \
             {{\"{}\": \"..\"}}",
            several.len(),
            several.first().map_or("", |q| q.question.as_str())
        )),
    }
}

/// Reads an object that names each question by its text or its header.
fn by_name(questions: &[AskQuestion], given: &Map<String, Value>) -> Result<Value, String> {
    let mut answers = Map::new();
    for (name, value) in given {
        let named =
            |q: &&AskQuestion| q.question == *name || (!q.header.is_empty() && q.header == *name);
        let Some(question) = questions.iter().find(named) else {
            return Err(format!("{name:?} is not one of the questions"));
        };
        let answer = match value {
            Value::String(text) => one(question, text),
            Value::Number(number) => one(question, &number.to_string()),
            Value::Array(items) if question.multi_select => items
                .iter()
                .map(|item| item.as_str().map(|text| pick(question, text)))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array)
                .ok_or_else(|| format!("the answers to {name:?} must be strings"))?,
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(format!("the answer to {name:?} must be a string"));
            }
        };
        answers.insert(question.question.clone(), answer);
    }
    match questions
        .iter()
        .find(|q| !answers.contains_key(&q.question))
    {
        Some(open) => Err(format!("{:?} has no answer", open.question)),
        None => Ok(Value::Object(answers)),
    }
}

fn one(question: &AskQuestion, text: &str) -> Value {
    if !question.multi_select {
        return pick(question, text);
    }
    // A label may contain a comma.
    if label(question, text).is_some() {
        return Value::Array(vec![pick(question, text)]);
    }
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    Value::Array(parts.map(|part| pick(question, part)).collect())
}

/// Prefers a label, then a number, then free text.
fn pick(question: &AskQuestion, text: &str) -> Value {
    let text = text.trim();
    let by_number = || {
        let number: usize = text.parse().ok()?;
        question
            .options
            .get(number.checked_sub(1)?)
            .map(|o| o.label.as_str())
    };
    Value::String(
        label(question, text)
            .or_else(by_number)
            .unwrap_or(text)
            .to_owned(),
    )
}

fn label<'a>(question: &'a AskQuestion, text: &str) -> Option<&'a str> {
    let text = text.trim().to_lowercase();
    question
        .options
        .iter()
        .map(|o| o.label.as_str())
        .find(|l| l.to_lowercase() == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::{AskOption, AskRule};

    fn question(text: &str, labels: &[&str], multi_select: bool) -> AskQuestion {
        let option = |l: &&str| AskOption {
            label: (*l).into(),
            description: String::new(),
        };
        AskQuestion {
            question: text.into(),
            header: String::new(),
            options: labels.iter().map(option).collect(),
            multi_select,
        }
    }

    fn ask(kind: AskKind, questions: Vec<AskQuestion>) -> Ask {
        Ask {
            id: "1".into(),
            kind,
            questions,
            ..Ask::default()
        }
    }

    fn answer(questions: Vec<AskQuestion>, reply: &str) -> String {
        match parse(&ask(AskKind::Question, questions), reply) {
            Ok(Answer::Questions(value)) => value.to_string(),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("400 {error}"),
        }
    }

    #[test]
    fn questions_take_labels_numbers_or_text() {
        let colours = || vec![question("Which?", &["Red", "2", "Blue"], false)];
        for (reply, want) in [
            ("red", r#"{"Which?":"Red"}"#),
            ("1", r#"{"Which?":"Red"}"#),
            ("2", r#"{"Which?":"2"}"#),
            ("3", r#"{"Which?":"Blue"}"#),
            ("9", r#"{"Which?":"9"}"#),
            (" green ", r#"{"Which?":"green"}"#),
            (r#"{"Which?":"3"}"#, r#"{"Which?":"Blue"}"#),
            (
                r#"{"Other?":"3"}"#,
                r#"400 "Other?" is not one of the questions"#,
            ),
            ("  ", "400 the reply is empty; the question still waits"),
        ] {
            assert_eq!(answer(colours(), reply), want, "{reply}");
        }
    }

    #[test]
    fn multi_select_is_comma_separated() {
        let parts = || vec![question("Which?", &["a", "b", "c, d"], true)];
        assert_eq!(answer(parts(), "1, B"), r#"{"Which?":["a","b"]}"#);
        assert_eq!(answer(parts(), "C, d"), r#"{"Which?":["c, d"]}"#);
        assert_eq!(
            answer(parts(), r#"{"Which?":["a","x"]}"#),
            r#"{"Which?":["a","x"]}"#
        );
    }

    #[test]
    fn several_questions_need_an_object_with_all_of_them() {
        let two = || vec![question("A?", &[], false), question("B?", &["x"], false)];
        assert_eq!(
            answer(two(), r#"{"A?":"1","B?":"1"}"#),
            r#"{"A?":"1","B?":"x"}"#
        );
        assert_eq!(answer(two(), r#"{"A?":"1"}"#), r#"400 "B?" has no answer"#);
        assert!(answer(two(), "yes").starts_with("400 there are 2 questions"));
    }

    #[test]
    fn approvals_take_only_listed_words() {
        let offered = Ask {
            always: Some(AskRule {
                agent: "crab".into(),
                sender: "user".into(),
                tool: "bash".into(),
                exact: "ls".into(),
                cwd: "/w".into(),
                prefix: String::new(),
            }),
            ..ask(AskKind::Approval, vec![])
        };
        let check = |reply: &str| parse(&offered, reply);
        for reply in ["Allow once", "1", "y", "YES"] {
            assert_eq!(check(reply), Ok(Answer::AllowOnce), "{reply}");
        }
        for reply in ["allow always", "2"] {
            assert_eq!(check(reply), Ok(Answer::AllowAlways), "{reply}");
        }
        for reply in ["Deny", "3", "n", "No"] {
            assert_eq!(check(reply), Ok(Answer::Deny(String::new())), "{reply}");
        }
        assert_eq!(
            check("deny: not: there"),
            Ok(Answer::Deny("not: there".into()))
        );
        for reply in ["", "sure", "4", "allow", "denying: x"] {
            assert!(check(reply).is_err(), "{reply}");
        }
        let not_offered = parse(&ask(AskKind::Approval, vec![]), "2").unwrap_err();
        assert!(not_offered.contains("not offered"), "{not_offered}");
    }
}
