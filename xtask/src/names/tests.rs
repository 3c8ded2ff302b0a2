use super::*;

#[test]
fn no_two_crates_that_meet_share_a_name_without_a_reason() {
    let problems = problems().expect("the workspace can be read");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn member(name: &str, imports: &[(&str, bool)]) -> Member {
    let imports = imports
        .iter()
        .map(|(name, of_tests)| ((*name).to_owned(), *of_tests));
    Member {
        name: name.to_owned(),
        manifest: "Cargo.toml".into(),
        imports: imports.collect(),
        programs: Vec::new(),
    }
}

#[test]
fn a_name_of_two_crates_counts_where_somebody_sees_both() {
    let defined = BTreeMap::from([("Entry".to_owned(), BTreeSet::from(["a", "b"]))]);
    let judged = |top: &[(&str, bool)], shared: &[(&str, &str)]| {
        let members = [member("a", &[]), member("b", &[]), member("top", top)];
        judged(&members, &defined, shared)
    };
    let both = [("a", false), ("b", false)];
    let [clash] = &judged(&both, &[])[..] else {
        panic!("one clash");
    };
    assert!(clash.starts_with("Entry: a and b define it"), "{clash}");
    assert!(judged(&both, &[("Entry", "why")]).is_empty());
    assert!(
        judged(&[("a", false), ("b", true)], &[]).is_empty(),
        "only its tests see both"
    );
    let [idle] = &judged(&[], &[("Entry", "why")])[..] else {
        panic!("a row too many");
    };
    assert!(idle.starts_with("Entry: no two crates"), "{idle}");
}

#[test]
fn types_are_found_by_their_public_definitions() {
    let text = "pub struct A<'a>;\npub(crate) enum B {}\n    pub trait C: D {}\npub type E = F;\npub fn g() {}";
    assert_eq!(types_of(text).collect::<Vec<_>>(), ["A", "C", "E"]);
}
