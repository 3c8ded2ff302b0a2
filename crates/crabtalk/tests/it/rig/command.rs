//! Programs that run to their end.

use super::wait::within;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The program under test.
pub(crate) const CRABTALK: &str = env!("CARGO_BIN_EXE_crabtalk");

/// The exit status and output of a program.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// Standard output; the program must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// Standard error; the program must have ended with this code.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stderr
    }
}

pub(crate) async fn run(mut command: Command, input: Option<&str>) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take();
    let write = async {
        if let (Some(stdin), Some(input)) = (&mut stdin, input) {
            // The program may end without reading all input.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        drop(stdin);
    };
    let both = async { tokio::join!(child.wait_with_output(), write).0 };
    let output = within("a program to end", both).await.unwrap();
    Output {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
