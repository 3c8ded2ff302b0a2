//! Skills of CrabTalk: SKILL.md parsed, checked, discovered, trusted, imported.
