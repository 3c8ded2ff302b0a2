//! Frames between daemon, guardian and restricted process: a
//! big-endian length and JSON.

use crate::sandbox::SandboxPolicy;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Longest shell command: whole generated files fit, endless model output does
/// not.
pub const MAX_COMMAND_BYTES: usize = 1 << 20;

/// Longest frame: a command with every byte escaped as `\u00xx`, and a
/// policy with thousands of paths.
const MAX_FRAME_BYTES: usize = 8 << 20;

/// The process to guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Run {
    /// A text for `bash`, or for `sh` if `bash` is missing.
    Shell(String),
    /// A program with its arguments, resolved in the `PATH` of its environment.
    Program {
        /// The name or path of the program.
        program: String,
        /// The arguments.
        arguments: Vec<String>,
    },
}

/// The order to a guardian, which uses its own working folder and environment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) run: Run,
    pub(crate) sandbox: Option<SandboxPolicy>,
    /// The limit of open files.
    pub(crate) open_files: Option<u64>,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        /// Processes that could not be ended, mostly those of other users.
        left: Vec<i32>,
    },
    NotStarted {
        why: String,
    },
}

pub(crate) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value)?;
    let length = frame.len() - 4;
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the command is too long",
        ));
    }
    let length = u32::try_from(length).expect("the frame limit fits u32");
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

pub(crate) fn write(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    to.write_all(&encode(value)?)
}

pub(crate) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the frame is too long",
        ));
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    Ok(serde_json::from_slice(&payload)?)
}
