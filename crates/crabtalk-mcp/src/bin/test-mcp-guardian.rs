//! The guardian as a separate program, for tests of this crate.

fn main() -> std::process::ExitCode {
    crabtalk_guardian::enter().unwrap_or(std::process::ExitCode::FAILURE)
}
