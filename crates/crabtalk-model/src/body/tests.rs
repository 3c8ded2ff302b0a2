use super::*;

#[test]
fn arguments_are_always_an_object() {
    for (given, want) in [
        ("", "{}"),
        (" {\"a\": 1} ", "{\"a\": 1}"),
        ("{\"a\":", "{\"invalid_arguments\":\"{\\\"a\\\":\"}"),
        ("[1]", "{\"invalid_arguments\":\"[1]\"}"),
        ("null", "{\"invalid_arguments\":\"null\"}"),
    ] {
        let call = ToolCall {
            arguments: given.into(),
            ..ToolCall::default()
        };
        assert_eq!(arguments(&call).get(), want, "{given}");
    }
}
