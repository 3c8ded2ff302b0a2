//! Arguments that are a language of their own: what they load, run or write by
//! other words than options.

use super::*;

/// Judges a command by a rule that allows its program with anything.
fn of_its_program(command: &str) -> Verdict {
    let name = command.split(' ').next().unwrap_or_default();
    Call::bash(&format!("bash({name} *): allow"), command).verdict()
}

#[test]
fn programs_among_the_arguments_are_asked_about() {
    for command in [
        // Where a set in brackets ends is not agreed on: behind it stands `w` or `e`.
        "sed -n 's|[|]|;s/|w f/x/' f",
        "sed -n 's|[|]|id;s,|e\n#,a,' f",
        "sed -n 's/[]/]/;s/w f/x/' f",
        "sed -n 's/[^]/]/;s/w f/x/' f",
        "sed '/[/]/;s/w f/x/' f",
        "sed 's/[[:x/]]/a/' f",
        "sed 's/[\\]/]/a/' f",
        "sed 's/a/b\nw f/' f",
        "sed 's/a/b\\\n/' f",
        "sed 's\\a\\b\\' f",
        "sed 'y/a/b/;w f' f",
        "awk 'BEGIN{ARGV[1]=\"/a\" \"b\";ARGC=2} 1' x",
        "awk 'BEGIN{SYMTAB[\"x\"]=1} 1' x",
        "awk -- 'BEGIN{system(\"x\")}' f",
        "awk -- 'BEGIN{print > \"x\"}'",
        "jq -n 'import \"x\" as $x {search:\"/y\"}; $x' f",
        "jq 'include \"x\"; .' f",
        "yq 'load_str(\"/a\" + \"b\")' f",
        "yq 'strload(\"x\")' f",
        "curl file:///etc/passwd",
        "curl FILE:///etc/passwd",
        "curl file://localhost/etc/passwd",
        "curl 'http://x/{a,b}'",
        "curl 'http://x/[a-z]'",
        "curl gopher://x:25/_y",
        "curl -- dict://x",
        "cargo test -- --logfile /x",
        "cargo test -- --logf /x",
        "cargo bench -- --output F",
        "cargo clippy -- @x",
        "rustc --emit=metadata=/x y.rs",
        "rustc --emit metadata=/x y.rs",
        "rustc --print=sysroot=/x y.rs",
        "git reflog expire --all",
        "git reflog delete 'HEAD@{0}'",
        "nm --plugin=./e.so x",
        "objdump --plugin=./e.so x",
        "diff3 --diff-program=./x a b c",
        "iconv -o x y",
        "xmllint --shell x",
        "xmllint --output x y",
        "eslint -c ./x.js y",
        "eslint --rulesdir x y",
        "prettier --plugin=./x.js y",
        "mypy --python-executable ./x y",
        "pylint --init-hook=x y",
        "pylint --load-plugins=x y",
        "jest --globalSetup=./x.js",
        "jest --config={}",
        "rspec -r ./x",
        "rake -e x",
        "phpunit --bootstrap x y",
        "just --shell ./x y",
        "ruff check --config x",
        "bundle exec ./x",
        "composer exec x",
        "mix run x",
        "dotnet build -p:X=y",
        "hg status --config alias.x=!y",
        "ccache ./x",
        "sdiff -o x a b",
        // A subcommand may stand behind `--`, and words may be cut short.
        "pip -- install x",
        "npm -- exec x",
        "docker -- run x",
        "ip a a 10.0.0.1/8 dev lo",
        "ip l s lo down",
        "ip r r default via 10.0.0.1",
    ] {
        let verdict = of_its_program(command);
        assert_eq!(verdict.permission, Ask, "{command}: {}", verdict.reason);
    }
}

#[test]
fn a_script_is_never_what_another_command_prints() {
    for script in ["/dev/stdin", "/dev/fd/0", "../../dev/stdin", "sub/link"] {
        for interpreter in ["python3", "python3.12", "node", "perl", "ruby"] {
            let command = format!("echo x | {interpreter} {script}");
            let linked = |path: &Path| match path.ends_with("sub/link") {
                true => Some("/dev/null".into()),
                false => lexical(path),
            };
            let rules = format!("bash(echo *): allow\nbash({interpreter} *): allow");
            let call = Call {
                resolve: &linked,
                ..Call::bash(&rules, &command)
            };
            let verdict = call.verdict();
            assert_eq!(verdict.permission, Ask, "{command}: {}", verdict.reason);
        }
    }
    let rules = "bash(echo *): allow\nbash(cat *): allow";
    let reads = Call::bash(rules, "echo x | cat /dev/stdin").verdict();
    assert_eq!(reads.permission, Allow, "{}", reads.reason);
}

#[test]
fn ordinary_arguments_pass() {
    for command in [
        "sed -n '10,20p;/a[bc]/p' f",
        "sed 's/[[:space:]]*$//' f",
        "sed -E 's/([^,]*),([0-9]+)/\\2/g' f",
        "sed 's|/a/b|/c|' f",
        "sed '/^[ \\t]*$/d' f",
        "jq -r '.a | .b' f.json",
        "yq '.a.b' f.yaml",
        "curl -sSfL https://example.com/x?y=1",
        "curl localhost:8080/x",
        "cargo test -- --nocapture --test-threads=1 name",
        "cargo run -- --logfile x",
        "rustc --emit=metadata x.rs",
        "git reflog -5",
        "git reflog show main",
        "nm -C x",
        "objdump -d x",
        "eslint --max-warnings=0 src",
        "prettier --check .",
        "mypy --strict src",
        "jest --ci -t name",
        "ruff check src",
        "awk -- '{print $1}' f",
        "ip -br addr",
        "ip route show default",
        "sed 'y/abc/xyz/;p' f",
        "dotnet test --no-build",
    ] {
        let verdict = of_its_program(command);
        assert_eq!(verdict.permission, Allow, "{command}: {}", verdict.reason);
    }
}
