//! What `grep` and `glob` find, and what they leave out.

use super::*;

/// A folder with ignored, hidden, binary and linked files.
fn furnished(world: &World) {
    for (path, text) in [
        ("a.rs", "one\nneedle two\nthree\n"),
        ("src/b.rs", "Needle\n"),
        ("src/c.txt", "a needle\n"),
        (".hidden", "needle\n"),
        ("target/d.rs", "needle\n"),
        (".gitignore", "target/\n"),
        (".git/config", "needle\n"),
        ("binary", "needle\0needle\n"),
    ] {
        let file = world.cwd.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let outside = world.cwd.parent().unwrap().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("secret.rs"), "needle\n").unwrap();
    symlink(&outside, world.cwd.join("linked")).unwrap();
    symlink(outside.join("secret.rs"), world.cwd.join("link.rs")).unwrap();
}

#[tokio::test]
async fn searches_leave_out_ignored_linked_and_binary_files() {
    for (tool, arguments, want) in [
        (
            "grep",
            json!({"pattern": "needle"}),
            ".hidden:1:needle\na.rs:2:needle two\nsrc/c.txt:1:a needle\n",
        ),
        (
            "grep",
            json!({"pattern": "^needle", "ignore_case": true, "glob": "*.rs"}),
            "a.rs:2:needle two\nsrc/b.rs:1:Needle\n",
        ),
        (
            "grep",
            json!({"pattern": "two", "context": 1}),
            "a.rs-1-one\na.rs:2:needle two\na.rs-3-three\n",
        ),
        (
            "grep",
            json!({"pattern": "(?i)needle", "path": "src", "files_only": true}),
            "src/b.rs\nsrc/c.txt\n",
        ),
        (
            "grep",
            json!({"pattern": "e", "path": "a.rs", "limit": 1}),
            "a.rs:1:one\n[only the first 1 results; narrow the search for the rest]\n",
        ),
        ("grep", json!({"pattern": "absent"}), "No matches"),
        ("glob", json!({"pattern": "*.rs"}), "a.rs\nsrc/b.rs\n"),
        ("glob", json!({"pattern": "src/*"}), "src/b.rs\nsrc/c.txt\n"),
        ("glob", json!({"pattern": "*.py"}), "No matches"),
    ] {
        let world = World::new();
        furnished(&world);
        let output = world.run(&world.tools(), tool, arguments.clone()).await;
        assert_eq!(output, ToolOutput::ok(want), "{tool} {arguments}");
    }
}

#[tokio::test]
async fn searches_explain_bad_patterns_and_closed_folders() {
    for (tool, arguments, want) in [
        (
            "grep",
            json!({"pattern": "("}),
            "not a valid regular expression",
        ),
        ("glob", json!({"pattern": "["}), "the glob is not valid"),
        (
            "grep",
            json!({"pattern": "x", "path": "/proc/self"}),
            "process information",
        ),
    ] {
        check(furnished, tool, arguments, true, want).await;
    }
}
