use super::*;

#[test]
fn versions_decide_what_is_asked_for() {
    for (id, thinking, proofs) in [
        ("gemini-1.5-pro", false, false),
        ("gemini-2.0-flash-001", false, false),
        ("gemini-2.5-flash", true, false),
        ("models/gemini-2.5-pro", true, false),
        ("gemini-3-pro-preview", true, true),
        ("gemini-3.1-pro", true, true),
        ("gemini-flash-latest", true, true),
        ("gemma-3-27b-it", false, false),
    ] {
        assert_eq!((thinks(id), wants_proofs(id)), (thinking, proofs), "{id}");
    }
}
