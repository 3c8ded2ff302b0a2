use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn home(dir: &Path) -> Home {
    Home::at(&dir.join("home"), Some(dir.to_owned()))
        .and_then(|home| home.create())
        .unwrap()
}

fn repository(path: PathBuf) -> PathBuf {
    fs::create_dir_all(path.join(".git")).unwrap();
    fs::write(path.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir_all(path.join("src/deep")).unwrap();
    path
}

#[test]
fn folders_in_a_repository_belong_to_its_project() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let house = repository(dir.path().join("work/house"));
    for folder in [house.clone(), house.join("src/deep"), house.join(".git")] {
        let sender = sender_in(&home, &folder, true).unwrap();
        assert_eq!(sender.as_deref(), Some("user/house"), "{folder:?}");
    }
    assert_eq!(sender_in(&home, dir.path(), true).unwrap(), None);
    let projects = Projects::read(&home).unwrap();
    assert_eq!(projects.folder_of("user/house"), Some(&*house));
    assert_eq!(projects.folder_of("user/house/roof"), Some(&*house));
    assert_eq!(projects.folder_of("user"), None);
    assert_eq!(projects.folder_of("user/-/roof"), None);
    assert_eq!(projects.folder_of("users/house"), None);
}

#[test]
fn folders_of_one_name_get_stable_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let folders = ["a/house", "b/house", "c/House"].map(|path| repository(dir.path().join(path)));
    let names = |keep| {
        let name = |folder: &PathBuf| sender_in(&home, folder, keep).unwrap().unwrap();
        folders.iter().map(name).collect::<Vec<_>>()
    };
    // Without `keep` nothing is saved.
    assert_eq!(names(false), ["user/house", "user/house", "user/House"]);
    let kept = ["user/house", "user/house-2", "user/House-3"];
    assert_eq!(names(true), kept);
    assert_eq!(names(false), kept);
}

#[test]
fn linked_work_trees_and_submodules_are_projects() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let house = repository(dir.path().join("house"));
    let linked = dir.path().join("branch");
    fs::create_dir(&linked).unwrap();
    fs::write(
        linked.join(".git"),
        "gitdir: ../house/.git/worktrees/branch\n",
    )
    .unwrap();
    let module = house.join("src/deep");
    fs::write(module.join(".git"), "gitdir: ../../.git/modules/deep\n").unwrap();
    for (folder, want) in [(&linked, "user/branch"), (&module, "user/deep")] {
        let sender = sender_in(&home, folder, true).unwrap();
        assert_eq!(sender.as_deref(), Some(want));
    }
}

#[test]
fn lookalikes_are_not_repositories() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    // A repository of dotfiles in the user's home.
    repository(dir.path().to_owned());
    let folder = dir.path().join("notes");
    fs::create_dir_all(folder.join("empty/.git")).unwrap();
    fs::create_dir_all(folder.join("text")).unwrap();
    fs::write(folder.join("text/.git"), "nothing").unwrap();
    fs::create_dir_all(folder.join("loop")).unwrap();
    symlink(".git", folder.join("loop/.git")).unwrap();
    for name in ["empty", "text", "loop", ""] {
        let sender = sender_in(&home, &folder.join(name), true).unwrap();
        assert_eq!(sender, None, "{name}");
    }
}

#[test]
fn pipe_named_git_does_not_block() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let pipe = rustix::fs::FileType::Fifo;
    for name in [
        dir.path().join("work/.git"),
        home.state_dir().join("projects.toml"),
    ] {
        fs::create_dir_all(name.parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &name, pipe, mode, 0).unwrap();
    }
    assert_eq!(
        sender_in(&home, &dir.path().join("work"), true).unwrap(),
        None
    );
    let house = repository(dir.path().join("house"));
    let error = sender_in(&home, &house, true).unwrap_err().to_string();
    assert!(error.contains("projects.toml"), "{error}");
}

#[test]
fn broken_list_is_reported_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let house = repository(dir.path().join("house"));
    let file = home.state_dir().join("projects.toml");
    fs::write(&file, "[[project]]\nname = 1\n").unwrap();
    let error = sender_in(&home, &house, true).unwrap_err().to_string();
    for part in ["projects.toml", "line 2", "--project NAME"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "[[project]]\nname = 1\n"
    );
}

#[test]
fn concurrent_commands_assign_different_names() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let folders: Vec<PathBuf> = (0..8)
        .map(|i| repository(dir.path().join(format!("{i}/house"))))
        .collect();
    let mut names: Vec<String> = std::thread::scope(|scope| {
        let give = |folder: &PathBuf| {
            let folder = folder.clone();
            let home = &home;
            scope.spawn(move || sender_in(home, &folder, true).unwrap().unwrap())
        };
        let threads: Vec<_> = folders.iter().map(give).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    names.sort();
    names.dedup();
    assert_eq!(names.len(), folders.len(), "{names:?}");
}

#[test]
fn configuration_can_disable_projects() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    for (text, off) in [
        ("", false),
        ("[cli]\n", false),
        ("[cli]\nproject = \"auto\"\n", false),
        ("[cli]\nproject = \"off\"\n", true),
        ("[cli]\nproject = 3\n", false),
        ("[cli\n", false),
    ] {
        fs::write(home.config_file(), text).unwrap();
        assert_eq!(is_off(&home), off, "{text:?}");
    }
}

#[test]
fn project_name_is_one_segment() {
    for name in ["house", "", "my house", "häuser"] {
        check(name).unwrap();
    }
    for name in ["a/b", "a\nb", "/", "-"] {
        check(name).unwrap_err();
    }
    assert_eq!(plain_name(Path::new("/")), "root");
    assert_eq!(plain_name(Path::new("/a/-")), "root");
    assert_eq!(plain_name(Path::new("/a\u{1b}b")), "a-b");
}
