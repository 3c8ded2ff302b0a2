//! Operating-system tools of CrabTalk: bash under a guardian, read, edit, write.
