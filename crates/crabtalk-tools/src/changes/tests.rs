use super::found::PathState;
use super::*;
use journal::sum;

fn nothing(path: &str) -> Line {
    Line::Will {
        id: 1,
        path: PathBuf::from(path),
        before: PathState::Nothing,
        folders: Vec::new(),
    }
}

#[test]
fn interrupted_run_is_reported() {
    let summed = sum(&[nothing("/a")]);
    assert!(summed.files[0].doubt.contains("interrupted"));
    let summed = sum(&[Line::Began {
        id: 2,
        what: "make".into(),
        top: PathBuf::from("/w"),
    }]);
    assert!(
        summed.notes[0].contains("`make` still runs or was interrupted"),
        "{summed:?}"
    );
}

#[tokio::test]
async fn budget_removes_the_oldest_runs_that_are_not_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let port = Arc::new(crabtalk_testkit::MemoryChanges::default());
    let changes = Changes::new(port, dir.path(), None, Vec::new(), Children::default());
    let work = move || {
        let run = |number: u64| (ConversationKey::new("crab", "user").unwrap(), number);
        for number in 1..=8_u64 {
            let journal = changes.0.journal(&run(number));
            let bytes = vec![u8::try_from(number).unwrap(); 1000];
            found::store(&journal.objects(), &found::sha256(&bytes), &bytes).unwrap();
            journal.write(&[nothing("/a")]).unwrap();
        }
        let left = |number: u64| !changes.0.journal(&run(number)).read().unwrap().is_empty();
        changes.0.make_room(1 << 20, &[]).unwrap();
        assert!(left(1), "there was room");
        changes.0.make_room(5000, &[run(1)]).unwrap();
        let kept: Vec<u64> = (1..=8).filter(|number| left(*number)).collect();
        assert_eq!(kept, [1, 7, 8]);
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}
