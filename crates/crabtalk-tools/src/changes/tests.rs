use super::found::Found;
use super::room::make_room;
use super::*;
use journal::sum;

fn nothing(path: &str) -> Line {
    Line::Will {
        id: 1,
        path: PathBuf::from(path).into(),
        before: Found::Nothing,
        folders: Vec::new(),
    }
}

fn file(sha256: &str) -> Found {
    Found::File {
        sha256: sha256.to_owned(),
        size: 1,
        mode: 0o644,
        exact: true,
    }
}

#[test]
fn a_line_that_a_crash_cut_off_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::at(dir.path().join("1"));
    journal.write(&[nothing("/a")]).unwrap();
    let path = dir.path().join("1/changes.jsonl");
    let mut text = std::fs::read(&path).unwrap();
    text.extend(b"{\"line\":\"did\",\"id\":1,\"aft");
    std::fs::write(&path, text).unwrap();
    journal
        .write(&[Line::Did {
            id: 1,
            after: file("x"),
        }])
        .unwrap();
    let summed = sum(&journal.read().unwrap());
    assert_eq!(summed.files.len(), 1);
    assert_eq!(summed.files[0].after, file("x"));
}

#[test]
fn a_name_that_is_no_text_is_read_as_it_was_written() {
    for bytes in [&b"a/\xff"[..], b"hex:00", b"plain", b"a\nb"] {
        let name = name::Name::from_bytes(bytes.to_vec());
        let text = serde_json::to_string(&name).unwrap();
        assert!(!text.contains('\n'));
        assert_eq!(serde_json::from_str::<name::Name>(&text).unwrap(), name);
    }
}

#[test]
fn a_run_that_was_cut_off_is_said_to_be_so() {
    let summed = sum(&[nothing("/a")]);
    assert!(summed.files[0].doubt.contains("cut off"));
    let summed = sum(&[Line::Began {
        id: 2,
        what: "make".into(),
        top: PathBuf::from("/w").into(),
    }]);
    assert!(summed.notes[0].contains("`make` was cut off"), "{summed:?}");
}

#[test]
fn what_is_kept_stays_within_its_budget_and_the_oldest_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    for run in 1..=8_u64 {
        let journal = Journal::at(dir.path().join(format!("conversation/{run}")));
        let bytes = vec![u8::try_from(run).unwrap(); 1000];
        found::store(&journal.objects(), &found::sha256(&bytes), &bytes).unwrap();
        journal.write(&[nothing("/a")]).unwrap();
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(run * 1000);
        let path = journal.folder().join("changes.jsonl");
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    }
    let oldest = dir.path().join("conversation/1");
    make_room(dir.path(), 1 << 20, &[]);
    assert!(oldest.exists(), "there was room");
    make_room(dir.path(), 5000, std::slice::from_ref(&oldest));
    let left = |run: u64| dir.path().join(format!("conversation/{run}")).exists();
    assert!(left(1), "it is in use");
    assert!(!left(2) && !left(3), "the oldest go");
    assert!(left(8), "the newest stays");
}
