use super::*;

fn error(text: &str) -> String {
    Expression::parse(text).unwrap_err().to_string()
}

#[test]
fn five_fields_and_names_are_read() {
    for good in [
        "* * * * *",
        "0 9 * * 1-5",
        "*/15 0-8,18-23/2 1,15 jan-mar,DEC mon-Fri",
        "0 0 29 2 *",
        "59 23 31 12 7",
        "  0\t0 * * sun ",
        "@daily",
        "@Hourly",
        "@midnight",
        "@annually",
        // Either the day, which never comes, or the weekday.
        "0 0 30 2 1",
    ] {
        assert!(Expression::parse(good).is_ok(), "{good}");
    }
    let kept = Expression::parse(" @daily ").unwrap();
    assert_eq!(kept.to_string(), "@daily");
}

#[test]
fn errors_name_the_field_and_allowed_values() {
    for (text, wants) in [
        ("60 * * * *", &["the minute field", "\"60\"", "0 to 59"][..]),
        ("* 24 * * *", &["the hour field", "0 to 23"]),
        ("* * 0 * *", &["the day field", "1 to 31"]),
        ("* * * 13 *", &["the month field", "1 to 12"]),
        ("* * * * 8", &["the weekday field", "0 to 7"]),
        ("* * * * monday", &["the weekday field", "sun to sat"]),
        ("* * * feb-jan *", &["the month field", "goes backwards"]),
        ("*/0 * * * *", &["the step", "1 to 59"]),
        ("5/10 * * * *", &["step without a range", "5-59/.."]),
        ("1,,2 * * * *", &["a value is missing"]),
        ("+1 * * * *", &["the minute field"]),
        ("1-2-3 * * * *", &["the minute field"]),
        ("* * * *", &["five fields", "has 4", "@daily"]),
        ("* * * * * *", &["has 6"]),
        ("", &["has 0"]),
        ("@fortnightly", &["there is no @fortnightly", "@weekly"]),
        ("@every 5m", &["write */10"]),
        ("@reboot", &["start of the daemon"]),
        ("é * * * *", &["the minute field"]),
    ] {
        let error = error(text);
        for want in wants {
            assert!(error.contains(want), "{text}: {error}");
        }
    }
    assert!(error(&"1,".repeat(1000)).contains("at most"));
}

#[test]
fn expressions_that_never_fire_are_refused() {
    for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * 30-31 feb *"] {
        assert!(error(never).contains("never fires"), "{never}");
    }
}
