use super::*;

fn json(node: &Node) -> serde_json::Value {
    reader::read(node, Path::new("f"))
        .expect("any tree is JSON")
        .0
}

fn check(result: Result<Node, Error>, want: &str) {
    let found = match result {
        Ok(node) => json(&node).to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, want);
}

fn place(node: &Node, path: &[&str]) -> (usize, usize) {
    let mut node = node;
    for key in path {
        let Value::Table(entries) = &node.value else {
            panic!("{key} in no table")
        };
        node = &entries.iter().find(|e| e.key == *key).expect("key").node;
    }
    (node.at.line, node.at.column)
}

#[test]
fn toml_values_have_positions() {
    let node = from_toml("\"é\" = 1\n[a.b]\nc = { d = [\"x\"] }\n", Path::new("f")).unwrap();
    assert_eq!(
        json(&node).to_string(),
        r#"{"a":{"b":{"c":{"d":["x"]}}},"é":1}"#
    );
    assert_eq!(place(&node, &["é"]), (1, 7));
    assert_eq!(place(&node, &["a", "b", "c", "d"]), (3, 11));
}

#[test]
fn yaml_values_have_positions() {
    let text = "a: 1\nb: {c: [x, true, 1.5, ~]}\nd:\n  - yes\n  - \"2\"\n";
    let node = from_yaml(text, Path::new("f"), 1).unwrap();
    assert_eq!(
        json(&node).to_string(),
        r#"{"a":1,"b":{"c":["x",true,1.5,null]},"d":["yes","2"]}"#
    );
    assert_eq!(place(&node, &["a"]), (2, 4));
    assert_eq!(place(&node, &["b", "c"]), (3, 8));
}

#[test]
fn syntax_errors_have_positions() {
    check(
        from_toml("a = 1\nb = \n", Path::new("f.toml")),
        "f.toml:2:5: not valid TOML: string values must be quoted, expected literal string",
    );
    check(
        from_toml("a = 1\na = 2\n", Path::new("f.toml")),
        "f.toml:2:1: not valid TOML: duplicate key",
    );
    check(
        from_yaml("a: [1\nb: 2\n", Path::new("f.md"), 1),
        "f.md:3:2: not valid YAML: illegal placement of ':' indicator",
    );
    check(
        from_yaml("a: 1\na: 2\n", Path::new("f.md"), 1),
        "f.md:3:1: not valid YAML: duplicate mapping key: a",
    );
    check(
        from_yaml("a: *x\n", Path::new("f.md"), 1),
        "f.md:2:4: not valid YAML: alias references unknown anchor",
    );
}

#[test]
fn yaml_bombs_are_refused() {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let last = format!("*a{}", i - 1);
        laughs.push_str(&format!("a{i}: &a{i} [{}]\n", vec![last; 9].join(", ")));
    }
    let deep = format!("a: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let wide = format!("a: [{}]", "x, ".repeat(50_000));
    for bomb in [laughs, deep, wide] {
        assert!(from_yaml(&bomb, Path::new("f"), 0).is_err());
    }
}
