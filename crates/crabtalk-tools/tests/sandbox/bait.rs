//! A world with targets for attacks, and the machines on
//! which it lies.

use crate::support::World;
use crabtalk_domain::tool::ToolOutput;
use crabtalk_guardian::{GuardianCommand, SandboxConfig};
use crabtalk_tools::OsTools;
use std::ffi::OsString;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A guardian before which a script runs, in the same process. No script file:
/// one that was just written may still be open in a child that
/// another test starts, and cannot be started then.
pub(crate) fn behind(script: &str, guardian: &GuardianCommand) -> GuardianCommand {
    let script = format!(
        "{script}\nexec {} \"$0\" \"$@\"",
        guardian.program.display()
    );
    let mut args: Vec<OsString> = vec!["-c".into(), script.into()];
    args.extend(guardian.args.iter().cloned());
    let mut command = GuardianCommand::new("/bin/sh");
    command.args = args;
    command
}

/// A machine to play.
pub(crate) struct Machine {
    pub(crate) title: &'static str,
    pub(crate) namespaces: bool,
    pub(crate) landlock: u8,
}

pub(crate) fn machines() -> Vec<Machine> {
    let machine = |title, namespaces, landlock| Machine {
        title,
        namespaces,
        landlock,
    };
    vec![
        machine("Landlock 3 (Linux 6.2)", false, 3),
        machine("Landlock 6 (6.12)", false, 6),
        machine("namespaces, Landlock 3", true, 3),
        machine("namespaces, Landlock 6", true, 6),
    ]
}

/// A world with targets for attacks.
pub(crate) struct Bait {
    pub(crate) world: World,
    pub(crate) tools: OsTools,
    victim: Child,
    pub(crate) listeners: [UnixListener; 3],
    pub(crate) tcp: std::net::TcpListener,
    pub(crate) abstract_name: String,
    pub(crate) memory: String,
    pub(crate) shared: PathBuf,
    pub(crate) guardian: PathBuf,
}

impl Bait {
    pub(crate) fn new(machine: &Machine) -> Self {
        let world = World::new();
        fs::create_dir_all(world.cwd.join(".git/hooks")).unwrap();
        fs::write(world.cwd.join(".git/config"), "").unwrap();
        for (folder, file) in [("closed", "file"), ("readable", "file")] {
            fs::create_dir(world.root.join(folder)).unwrap();
            fs::write(world.root.join(folder).join(file), "secret").unwrap();
        }
        let abstract_name = format!("crabtalk-test-{}", world.root.display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let listeners = [
            UnixListener::bind(world.root.join("closed/socket")).unwrap(),
            UnixListener::bind(world.cwd.join("socket")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
        ];
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        for listener in &listeners {
            listener.set_nonblocking(true).unwrap();
        }
        let unique = world
            .root
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let shared = PathBuf::from(format!("/dev/shm/crabtalk-test{unique}"));
        fs::write(&shared, "secret").unwrap();
        let mut config = world.config();
        let guardian = world.root.join("guardian.pid");
        config.guardian = behind(
            &format!("echo $$ > {}", guardian.display()),
            &config.guardian,
        );
        config.sandbox = SandboxConfig {
            read: vec![world.root.join("readable")],
            namespaces: machine.namespaces,
            landlock: machine.landlock,
            ..SandboxConfig::default()
        };
        Self {
            tools: OsTools::new(config),
            victim: Command::new("sleep")
                .arg("1000")
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
            memory: perl("$i = shmget(0, 64, 01600); shmwrite($i, 'secret', 0, 6); print $i"),
            abstract_name,
            listeners,
            tcp,
            shared,
            guardian,
            world,
        }
    }

    pub(crate) async fn run(&self, command: &str) -> ToolOutput {
        self.world.bash(&self.tools, command).await
    }

    pub(crate) fn victim(&self) -> u32 {
        self.victim.id()
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        // What remains of a failed test must not stay.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = fs::remove_file(&self.shared);
        perl(&format!("shmctl({}, 0, 0)", self.memory));
    }
}

fn perl(script: &str) -> String {
    let output = Command::new("perl").args(["-e", script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
