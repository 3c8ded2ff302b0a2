//! `SKILL.md` with anything in it.

use crate::skills::format::parse;
use std::path::Path;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/skills/corpus/skills");

/// A text is a skill or a finding, and what is read of it is bounded by it.
#[test]
fn fuzz_skill_files() {
    crabtalk_testkit::fuzz(CORPUS, |bytes| {
        let Ok((skill, findings)) = parse(bytes, Path::new("SKILL.md")) else {
            return;
        };
        // Invalid UTF-8 grows from one byte to three.
        assert!(skill.body.len() <= 3 * bytes.len());
        assert!(findings.len() <= 1_000, "{} findings", findings.len());
    });
}
