//! The build that this one is compared with.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The profile that packages are built with, where a commit has it.
const FOR_PACKAGES: &str = "dist";

/// The program that is meant: a file, or the daemon of a commit, which is built
/// below the target folder, once.
pub(super) fn program(meant: &String) -> anyhow::Result<PathBuf> {
    if Path::new(meant).is_file() {
        return Ok(fs::canonicalize(meant)?);
    }
    let name = Command::new("git")
        .args(["rev-parse", "--verify", &format!("{meant}^{{commit}}")])
        .output()
        .context("cannot run git")?;
    ensure!(
        name.status.success(),
        "{meant} is neither a program nor a commit"
    );
    let commit = String::from_utf8(name.stdout)?.trim().to_owned();
    let folder = target()?.join("bench").join(&commit);
    let program = folder.join("crabtalk");
    if !program.exists() {
        fs::copy(build(&folder, &commit)?, &program)?;
    }
    Ok(program)
}

/// The folder that this program was built in.
fn target() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent);
    Ok(target.context("no target folder")?.to_owned())
}

/// Builds the daemon of a commit as it was handed out then.
fn build(folder: &Path, commit: &str) -> anyhow::Result<PathBuf> {
    let source = folder.join("source");
    fs::create_dir_all(&source)?;
    let mut archive = Command::new("git")
        .args(["archive", commit])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run git")?;
    let packed = archive.stdout.take().context("its stdout is piped")?;
    let unpacked = Command::new("tar")
        .arg("x")
        .current_dir(&source)
        .stdin(packed)
        .status()
        .context("cannot run tar")?;
    ensure!(
        archive.wait()?.success() && unpacked.success(),
        "cannot unpack {commit}"
    );
    let manifest = fs::read_to_string(source.join("Cargo.toml"))?;
    let profile = match manifest.contains(&format!("[profile.{FOR_PACKAGES}]")) {
        true => FOR_PACKAGES,
        false => "release",
    };
    let target = folder.join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--profile", profile, "--package", "crabtalk"])
        .current_dir(&source)
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "{commit} cannot be built");
    Ok(target.join(profile).join("crabtalk"))
}
