use super::*;

fn member(name: &str, imports: &[(&str, bool)]) -> Member {
    Member {
        name: name.into(),
        manifest: PathBuf::new(),
        imports: imports
            .iter()
            .map(|(name, dev)| ((*name).into(), *dev))
            .collect(),
        programs: Vec::new(),
    }
}

#[test]
fn every_crate_imports_what_it_may_and_takes_the_workspaces_lints() {
    let problems = problems().unwrap();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn a_forbidden_import_is_named_with_what_is_allowed() {
    for (imports, found) in [
        (&[("crabtalk-domain", false)][..], ""),
        (&[("crabtalk-proto", true)][..], ""),
        (&[("serde", false)][..], ""),
        (
            &[("crabtalk-proto", false)][..],
            "crabtalk-runtime: may not import crabtalk-proto; it may import crabtalk-domain, crabtalk-gate",
        ),
        (
            &[("crabtalk-store", true)][..],
            "crabtalk-runtime: may not import crabtalk-store in its tests; it may import crabtalk-domain, crabtalk-gate",
        ),
    ] {
        let members = [
            member("crabtalk-runtime", imports),
            member("crabtalk-domain", &[]),
            member("crabtalk-store", &[("crabtalk-domain", false)]),
            member("crabtalk-proto", &[]),
        ];
        assert_eq!(forbidden_imports(&members).join("\n"), found);
    }
}

#[test]
fn a_program_that_is_no_component_is_not_called_like_one() {
    let mut guardian = member("crabtalk-guardian", &[]);
    guardian.programs = vec!["test-guardian".into(), "crabtalk-guardian".into()];
    let mut fetch = member("crabtalk-fetch", &[("crabtalk-component", false)]);
    fetch.programs = vec!["crabtalk-fetch".into()];
    assert_eq!(misnamed_programs(&fetch), Vec::<String>::new());
    let found = misnamed_programs(&guardian);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("its program crabtalk-guardian is no component"));
}

#[test]
fn a_crate_without_a_place_is_found() {
    let found = forbidden_imports(&[member("crabtalk-new", &[])]);
    assert!(
        found[0].starts_with("crabtalk-new: not in the table"),
        "{found:?}"
    );
}

#[test]
fn lints_of_its_own_are_not_the_workspaces() {
    assert!(has_workspace_lints("[lints]\nworkspace = true").unwrap());
    assert!(!has_workspace_lints("[package]\nname = \"a\"").unwrap());
    assert!(!has_workspace_lints("[lints.rust]\nunsafe_code = \"warn\"").unwrap());
}
