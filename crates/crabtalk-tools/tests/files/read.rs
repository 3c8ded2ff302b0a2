//! What `read` shows of files, folders and images.

use super::*;

#[tokio::test]
async fn read_shows_numbered_lines_in_pages() {
    let world = World::new();
    let tools = world.tools();
    std::fs::write(world.cwd.join("f"), "one\ntwo\nthree").unwrap();
    for (arguments, want) in [
        (
            json!({"path": "f"}),
            "     1\tone\n     2\ttwo\n     3\tthree\n",
        ),
        (json!({"path": "f", "offset": 3}), "     3\tthree\n"),
        (
            json!({"path": "f", "offset": 2, "limit": 1}),
            "     2\ttwo\n[lines 2 to 2; the file goes on: read with offset 3]\n",
        ),
        (
            json!({"path": "f", "offset": 2, "limit": 2}),
            "     2\ttwo\n     3\tthree\n",
        ),
    ] {
        let output = world.run(&tools, "read", arguments.clone()).await;
        assert_eq!(output, ToolOutput::ok(want), "{arguments}");
    }
}

#[tokio::test]
async fn read_copes_with_every_kind_of_text() {
    check(file(""), "read", json!({"path": "f"}), false, "is empty]").await;
    check(
        file("a\r\nb\r\n"),
        "read",
        json!({"path": "f"}),
        false,
        "1\ta\n     2\tb\n[lines end with CRLF",
    )
    .await;
    check(
        file("\u{feff}a\n"),
        "read",
        json!({"path": "f"}),
        false,
        "     1\ta\n",
    )
    .await;
    check(
        file("a\0b"),
        "read",
        json!({"path": "f"}),
        true,
        "is binary (3 bytes)",
    )
    .await;
    check(
        file("a\n"),
        "read",
        json!({"path": "f", "offset": 3}),
        true,
        "has 1 lines",
    )
    .await;
    check(
        file("a\n"),
        "read",
        json!({"path": "f", "offset": 2}),
        true,
        "has 1 lines",
    )
    .await;
    let latin = |w: &World| std::fs::write(w.cwd.join("f"), b"caf\xe9\n").unwrap();
    check(
        latin,
        "read",
        json!({"path": "f"}),
        false,
        "caf\u{fffd}\n[not all of it is UTF-8",
    )
    .await;
    let wide = |w: &World| std::fs::write(w.cwd.join("f"), "é".repeat(5000) + "\nend\n").unwrap();
    check(
        wide,
        "read",
        json!({"path": "f"}),
        false,
        "é [8000 more bytes in this line]\n     2\tend",
    )
    .await;
    let cut =
        |w: &World| std::fs::write(w.cwd.join("f"), format!("x{}", "é".repeat(5000))).unwrap();
    check(
        cut,
        "read",
        json!({"path": "f"}),
        false,
        "é [8001 more bytes in this line]\n",
    )
    .await;
}

#[tokio::test]
async fn a_huge_file_is_read_in_bounded_pieces() {
    let huge = |w: &World| {
        let file = std::fs::File::create(w.cwd.join("f")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[b'x'; 10_000], 0).unwrap();
        // Sparse: 1 TiB.
        file.set_len(1 << 40).unwrap();
    };
    check(
        huge,
        "edit",
        json!({"path": "f", "old_string": "x", "new_string": "y"}),
        true,
        "larger than 16 MiB",
    )
    .await;
    check(
        huge,
        "read",
        json!({"path": "f"}),
        true,
        "more than 256 MiB would have to be read",
    )
    .await;
    let lines = |w: &World| {
        let text: String = (1..=9000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(w.cwd.join("f"), text).unwrap();
    };
    check(
        lines,
        "read",
        json!({"path": "f"}),
        false,
        "[lines 1 to 2000; the file goes on: read with offset 2001]",
    )
    .await;
    let long = |w: &World| {
        std::fs::write(w.cwd.join("f"), ("y".repeat(1900) + "\n").repeat(1000)).unwrap()
    };
    check(
        long,
        "read",
        json!({"path": "f"}),
        false,
        "[lines 1 to 25; the file goes on",
    )
    .await;
}

#[tokio::test]
async fn read_lists_a_folder() {
    let furnish = |w: &World| {
        std::fs::create_dir(w.cwd.join("sub")).unwrap();
        std::fs::write(w.cwd.join("a"), "").unwrap();
        symlink("a", w.cwd.join("z")).unwrap();
    };
    check(
        furnish,
        "read",
        json!({"path": "."}),
        false,
        "with 3 entries\na\nsub/\nz@",
    )
    .await;
    let many =
        |w: &World| (0..600).for_each(|n| std::fs::write(w.cwd.join(n.to_string()), "").unwrap());
    check(
        many,
        "read",
        json!({"path": "."}),
        false,
        "[100 more are not shown]",
    )
    .await;
}

/// A PNG of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

#[tokio::test]
async fn read_detects_images_by_content() {
    let world = World::new();
    let tools = world.tools();
    std::fs::write(world.cwd.join("notes.txt"), PIXEL).unwrap();
    let output = world
        .run(&tools, "read", json!({"path": "notes.txt"}))
        .await;
    assert!(!output.is_error, "{}", output.content);
    assert!(
        output
            .content
            .ends_with("/notes.txt: image/png, 69 bytes, 1 x 1 pixels"),
        "{}",
        output.content
    );
    assert_eq!(output.images.len(), 1);
    assert_eq!(output.images[0].to_bytes(), PIXEL);
    let text = "not an image\n";
    std::fs::write(world.cwd.join("a.png"), text).unwrap();
    let output = world.run(&tools, "read", json!({"path": "a.png"})).await;
    assert!(
        output.content.contains("1\tnot an image"),
        "{}",
        output.content
    );
    assert_eq!(output.images, []);
}

#[tokio::test]
async fn an_image_that_no_model_takes_is_told_in_words() {
    let write = |bytes: Vec<u8>| move |w: &World| std::fs::write(w.cwd.join("f"), &bytes).unwrap();
    let path = json!({"path": "f"});
    let cut = PIXEL[..60].to_vec();
    check(
        write(cut),
        "read",
        path.clone(),
        true,
        "is binary (60 bytes)",
    )
    .await;
    let mut wide = PIXEL.to_vec();
    wide[18] = 0x20;
    check(
        write(wide),
        "read",
        path.clone(),
        true,
        "of 8193 x 1 pixels, and 8000 a side can be shown; make a smaller one",
    )
    .await;
    let large = |w: &World| {
        let file = std::fs::File::create(w.cwd.join("f")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, PIXEL, 0).unwrap();
        file.set_len(crabtalk_domain::MAX_IMAGE_BYTES as u64 + 1)
            .unwrap();
    };
    check(
        large,
        "read",
        path,
        true,
        "of 3932161 bytes, and 3932160 can be shown",
    )
    .await;
}
