//! Which drafts are entries, and what is said of the others.

use super::*;

fn check(draft: Draft) -> Result<CronEntry, String> {
    let now = "2026-11-22T10:00:00Z".parse().unwrap();
    let entry = draft.check_new("crab", &TimeZone::UTC, now);
    entry.map_err(|error| error.to_string())
}

fn draft() -> Draft {
    Draft {
        schedule: "0 9 * * *".into(),
        content: "look".into(),
        ..Draft::default()
    }
}

#[test]
fn minimal_drafts_are_valid() {
    let entry = check(draft()).unwrap();
    assert_eq!(entry.key.to_string(), "(crab, cron)");
    assert_eq!(entry.missed, Missed::Skip);
    assert_eq!((entry.asks, entry.notify), (Asks::Refuse, Notify::Failures));
    assert_eq!(entry.words(), "look");
    let skill = Draft {
        skill: "/review".into(),
        args: " now ".into(),
        ..draft()
    };
    assert_eq!(check(skill).unwrap().words(), "/review now look");
}

#[test]
fn single_times_are_instants_and_made_up_for() {
    let entry = check(Draft {
        schedule: String::new(),
        at: "in 20m".into(),
        zone: "Europe/Berlin".into(),
        ..draft()
    });
    let entry = entry.unwrap();
    assert_eq!(entry.draft.at, "2026-11-22T11:20:00+01:00");
    assert_eq!(entry.missed, Missed::Once);
    assert!(entry.is_once());
}

#[test]
fn invalid_drafts_have_clear_errors() {
    let cases: [(&str, Draft); 11] = [
        (
            "schedule or a time",
            Draft {
                at: "17:30".into(),
                ..draft()
            },
        ),
        (
            "schedule or a time",
            Draft {
                schedule: " ".into(),
                ..draft()
            },
        ),
        (
            "needs a skill",
            Draft {
                content: " ".into(),
                ..draft()
            },
        ),
        (
            "unknown time zone",
            Draft {
                zone: "Mars/Base".into(),
                ..draft()
            },
        ),
        (
            "is not a valid name",
            Draft {
                agent: "../x".into(),
                ..draft()
            },
        ),
        (
            "is not a valid name",
            Draft {
                skill: "a b".into(),
                ..draft()
            },
        ),
        (
            "reserved for the daemon",
            Draft {
                sender: "event:x".into(),
                ..draft()
            },
        ),
        (
            "not absolute",
            Draft {
                cwd: "work".into(),
                ..draft()
            },
        ),
        (
            "\"skip\" or \"once\"",
            Draft {
                missed: "twice".into(),
                ..draft()
            },
        ),
        (
            "more than 65536 bytes",
            Draft {
                content: "x".repeat(70_000),
                ..draft()
            },
        ),
        (
            "the hour field",
            Draft {
                schedule: "0 24 * * *".into(),
                ..draft()
            },
        ),
    ];
    for (want, draft) in cases {
        let error = check(draft).unwrap_err();
        assert!(error.contains(want), "{want}: {error}");
    }
}
