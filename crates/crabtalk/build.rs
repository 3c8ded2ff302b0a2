//! Lays functions that run together side by side in a release build, so that
//! the daemon holds and wakes few pages of its code (RFC 0221). Where the
//! linker does not understand that, the program is a little larger in memory
//! and the same in everything else.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Names of functions, in the order of their code; `cargo xtask order` writes it.
const ORDER: &str = "link-order.txt";

fn main() {
    println!("cargo::rerun-if-changed={ORDER}");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        let order = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join(ORDER);
        let arguments = [
            format!("-Wl,--symbol-ordering-file={}", order.display()),
            // Names that have gone since are no reason to complain.
            "-Wl,--no-warn-symbol-ordering".to_owned(),
        ];
        if links_with(&arguments) == Some(true) {
            for argument in arguments {
                println!("cargo::rustc-link-arg-bins={argument}");
            }
        }
    }
}

/// What cargo tells every build script.
fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_default()
}

/// Tries the arguments on the smallest of programs.
fn links_with(arguments: &[String]) -> Option<bool> {
    let folder = PathBuf::from(variable("OUT_DIR"));
    let source = folder.join("smallest.rs");
    std::fs::write(&source, "fn main() {}\n").ok()?;
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.arg(&source).arg("-o").arg(folder.join("smallest"));
    rustc.arg("--target").arg(variable("TARGET"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.display()));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    for argument in arguments {
        rustc.arg("-C").arg(format!("link-arg={argument}"));
    }
    rustc.stdout(Stdio::null()).stderr(Stdio::null());
    Some(rustc.status().ok()?.success())
}
