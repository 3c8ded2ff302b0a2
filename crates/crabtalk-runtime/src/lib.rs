//! Conversations, runs, steps and the gate of CrabTalk.
