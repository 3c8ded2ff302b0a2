use super::*;

fn found(name: &str) -> FoundPort {
    FoundPort {
        name: name.into(),
        says: Ok(PortFile {
            port: 1,
            instance: None,
        }),
    }
}

/// The names of servers, and ignored port files with the reason.
fn judged(configured: &[&str], names: &[&str]) -> (Vec<String>, Vec<(String, String)>) {
    let port = PortFile {
        port: 1,
        instance: None,
    };
    let settings =
        |name: &&str| Settings::new(*name, Source::Config, Transport::Port(port.clone()));
    let configured: Vec<Settings> = configured.iter().map(settings).collect();
    let names: Vec<FoundPort> = names.iter().map(|name| found(name)).collect();
    let (wanted, passed_over) = wanted(&configured, &names);
    let why = passed_over.into_iter().map(|(name, (_, why))| (name, why));
    (wanted.into_keys().collect(), why.collect())
}

#[test]
fn lower_case_name_takes_precedence() {
    for names in [
        ["FETCH", "Fetch", "fetch"],
        ["fetch", "Fetch", "FETCH"],
        ["Fetch", "fetch", "FETCH"],
    ] {
        let (wanted, told) = judged(&[], &names);
        assert_eq!(wanted, ["fetch"], "{names:?}");
        let others: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(others, ["FETCH", "Fetch"]);
        for (_, why) in told {
            let want = "its name differs from fetch only in case";
            assert!(why.starts_with(want), "{why}");
        }
    }
    let (wanted, told) = judged(&["Fetch"], &["fetch"]);
    assert_eq!(wanted, ["Fetch"], "the configuration's");
    assert!(told[0].1.contains("differs from Fetch"), "{told:?}");
    let (_, told) = judged(&["fetch"], &["fetch"]);
    assert_eq!(told[0].1, "fetch exists and takes precedence");
}

#[test]
fn lists_are_sorted_whatever_the_case() {
    let sorted = small_first(["zoo", "Fetch", "Zoo", "art", "fetch"], |name| name);
    assert_eq!(sorted, ["art", "fetch", "Fetch", "zoo", "Zoo"]);
}
