//! Tests of word boundaries and time expressions.

use super::*;

fn check(text: &str, want: &str) {
    assert_eq!(terms(text).join(" "), want, "{text}");
}

#[test]
fn inflections_meet() {
    check("She bought two bicycles", "buy two bicycl");
    check("buying bikes", "buy bicycl");
    check("The children's feet were frozen", "child foot freez");
    check("authentication auth", "authent authent");
}

#[test]
fn clitics_and_stop_words_are_off() {
    check(
        "I don't think it's Caroline’s, we'll see",
        "think carolin see",
    );
    check("L'eau d'Évian qu'il aime", "eau evian il aim");
    check("isn't can't won't o'clock", "o clock");
}

#[test]
fn accents_and_case_fold() {
    check(
        "Café CAFÉ cafe\u{301} Straße Søren Łódź",
        "cafe cafe cafe strass soren lodz",
    );
    check("ΟΔΟΣ Οδός", "οδ οδ");
    check("большой Ёлка", "больш елк");
}

#[test]
fn scripts_without_spaces_become_pairs() {
    check("東京タワー", "東京 京タ タワ ワー");
    check("我喜欢Rust语言", "我喜 喜欢 rust 语言");
    check("ﾀﾜｰ", "タワ ワー");
    check("犬", "犬");
}

#[test]
fn identifiers_and_keys() {
    check("crabtalk_memory::index/v1.2", "crabtalk memori index v1 2");
    assert!(terms(&"x".repeat(65)).is_empty());
    assert!(terms("").is_empty());
    assert!(terms("'''  ''").is_empty());
}

#[test]
fn passages_end_with_sentences() {
    let text = "One sentence of words here. ".repeat(100);
    let ranges = passages(&text);
    assert!(ranges.len() > 2);
    assert!(
        ranges
            .iter()
            .all(|r| r.len() <= 1_000 && text[r.clone()].trim_end().ends_with('.'))
    );
    let joined: String = ranges.iter().map(|r| &text[r.clone()]).collect();
    assert_eq!(joined, text);
    for endless in [
        "x".repeat(5_000),
        "漢".repeat(3_000),
        "a b ".repeat(2_000),
        "é\u{3000}".repeat(900),
    ] {
        let ranges = passages(&endless);
        assert!(ranges.iter().all(|r| r.len() <= 1_000));
        assert_eq!(ranges.iter().map(|r| r.len()).sum::<usize>(), endless.len());
    }
}

#[test]
fn a_cut_prefers_whole_sentences() {
    assert_eq!(
        cut("One two. Three four. Five.", 21),
        "One two. Three four."
    );
    assert_eq!(cut("One two three four five", 12), "One two…");
    assert_eq!(cut("短い文。もう一つの文。", 14), "短い文。");
    assert_eq!(cut("v1.2 is out. Yes", 14), "v1.2 is out.");
    assert_eq!(cut("日本語日本語", 10), "日本…");
}

#[test]
fn queries_name_dates() {
    let hint = |year, month, day| Some(DateHint { year, month, day });
    let today = Some(jiff::civil::date(2026, 3, 1));
    for (text, want) in [
        (
            "What happened on 7 May 2023?",
            hint(Some(2023), Some(5), Some(7)),
        ),
        ("May 7th, 2023", hint(Some(2023), Some(5), Some(7))),
        ("the 3rd of June", hint(None, Some(6), Some(3))),
        ("What did we do in May?", hint(None, Some(5), None)),
        ("in January 2022", hint(Some(2022), Some(1), None)),
        ("2023-05-07", hint(Some(2023), Some(5), Some(7))),
        ("2023年5月7日に", hint(Some(2023), Some(5), Some(7))),
        ("trips in 2021", hint(Some(2021), None, None)),
        (
            "what did I say yesterday",
            hint(Some(2026), Some(2), Some(28)),
        ),
        ("bills of last month", hint(Some(2026), Some(2), None)),
        ("may I march on?", None),
        ("port 8080 of 12 machines", None),
    ] {
        assert_eq!(date_hint(text, today), want, "{text}");
    }
}

#[test]
fn turns_tell_times() {
    let tells = |text: &str| tells_time(Words::cut(text).iter().map(|w| w.text));
    for yes in [
        "we met last week",
        "two days ago",
        "on Friday",
        "in May",
        "in 2019",
        "3 weeks off",
    ] {
        assert!(tells(yes), "{yes}");
    }
    for no in ["we may march", "a day", "the last word"] {
        assert!(!tells(no), "{no}");
    }
    assert!(asks_when("When did she go?") && asks_when("what year was it"));
    assert!(!asks_when("what is it"));
}
