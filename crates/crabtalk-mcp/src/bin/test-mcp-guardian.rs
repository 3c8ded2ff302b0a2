//! The guardian as a separate program, for this crate's tests.

fn main() -> std::process::ExitCode {
    crabtalk_guardian::enter().unwrap_or(std::process::ExitCode::FAILURE)
}
