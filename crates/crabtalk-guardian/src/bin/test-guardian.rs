//! The guardian as a program of its own, for tests of this crate.

fn main() -> std::process::ExitCode {
    crabtalk_guardian::enter().unwrap_or(std::process::ExitCode::FAILURE)
}
