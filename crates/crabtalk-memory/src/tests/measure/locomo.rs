//! Reads `locomo10.json`, which its licence forbids us to ship.

use super::{Conversation, Question, Turn};
use jiff::civil::Date;
use serde_json::Value;
use std::collections::HashMap;

/// Reads the file's text; an error says what it lacks.
pub(crate) fn parse(text: &str) -> Result<Vec<Conversation>, String> {
    let samples: Vec<Value> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let read = |(at, sample)| sample_of(sample).map_err(|e| format!("sample {at}: {e}"));
    samples.iter().enumerate().map(read).collect()
}

fn sample_of(sample: &Value) -> Result<Conversation, String> {
    let talk = sample.get("conversation").ok_or("no `conversation`")?;
    let mut out = Conversation::default();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut session = 0;
    for number in 1.. {
        let Some(turns) = talk
            .get(format!("session_{number}"))
            .and_then(Value::as_array)
        else {
            // Some samples have dates for sessions that they lack.
            if talk.get(format!("session_{number}_date_time")).is_none() {
                break;
            }
            continue;
        };
        let day = talk
            .get(format!("session_{number}_date_time"))
            .and_then(Value::as_str)
            .and_then(day_of);
        for turn in turns {
            let field = |name: &str| turn.get(name).and_then(Value::as_str).unwrap_or_default();
            by_id.insert(field("dia_id").to_owned(), out.turns.len());
            let (speaker, text) = (field("speaker").to_owned(), field("text").to_owned());
            out.turns.push(Turn {
                speaker,
                text,
                session,
                day,
            });
        }
        session += 1;
    }
    let questions = sample
        .get("qa")
        .and_then(Value::as_array)
        .ok_or("no `qa`")?;
    out.questions = questions
        .iter()
        .filter_map(|qa| question(qa, &by_id))
        .collect();
    Ok(out)
}

/// A question that has evidence. Category 5 asks for what was never said.
fn question(qa: &Value, by_id: &HashMap<String, usize>) -> Option<Question> {
    if qa.get("category").and_then(Value::as_u64) == Some(5) {
        return None;
    }
    let named = qa
        .get("evidence")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    // Some list several turns in one string.
    let ids = named.flat_map(|ids| ids.split([';', ',', ' ']));
    let evidence: Vec<usize> = ids.filter_map(|id| by_id.get(id.trim()).copied()).collect();
    let text = qa.get("question")?.as_str()?.to_owned();
    (!evidence.is_empty()).then_some(Question { text, evidence })
}

/// "1:56 pm on 8 May, 2023".
fn day_of(text: &str) -> Option<i32> {
    let hint =
        crate::text::date_hint(text.split_once(" on ").map_or(text, |(_, date)| date), None)?;
    Date::new(hint.year?, hint.month?, hint.day?)
        .ok()
        .map(crate::days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_read() {
        let text = r#"[{"sample_id": "conv-1", "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi"},
                          {"speaker": "Bob", "dia_id": "D1:2", "text": "I bought a boat"}],
            "session_2_date_time": "9:00 am on 9 May, 2023",
            "session_3_date_time": "9:00 am on 1 June, 2023",
            "session_3": [{"speaker": "Ann", "dia_id": "D3:1", "text": "It sank"}]},
          "qa": [{"question": "What did Bob buy?", "answer": "a boat", "evidence": ["D1:2"], "category": 4},
                 {"question": "And then?", "answer": "x", "evidence": ["D1:2; D3:1"], "category": 1},
                 {"question": "Never?", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5},
                 {"question": "No evidence?", "answer": "x", "evidence": [], "category": 1}]}]"#;
        let conversations = parse(text).unwrap();
        let [one] = &conversations[..] else {
            panic!("one sample")
        };
        assert_eq!(one.turns.len(), 3);
        assert_eq!(
            one.turns[0].day,
            Some(crate::days(jiff::civil::date(2023, 5, 8)))
        );
        assert_eq!(one.turns[2].session, 1);
        let evidence: Vec<_> = one.questions.iter().map(|q| q.evidence.clone()).collect();
        assert_eq!(evidence, [vec![1], vec![1, 2]]);
        assert!(parse("{}").is_err());
        assert_eq!(parse("[{}]").unwrap_err(), "sample 0: no `conversation`");
    }
}
