//! The guardian as a program of its own, for tests of this crate.

fn main() -> std::process::ExitCode {
    crabtalk_tools::guardian::main()
}
