//! Attacks of a command on the world outside, on every machine that can be
//! simulated here: kernels with less of landlock, with and without namespaces.

use crate::bait::{Bait, Machine, machines};
use crate::support::World;
use crate::table::{compare, page};
use crabtalk_testkit::tools::{has_tools, skip};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use tokio::task::JoinSet;

/// Printed by a command that got through.
const REACHED: &str = "REACHED";

/// A perl script as a command; it prints the word if its last value is true.
fn script(body: &str) -> String {
    format!("perl -e 'use Socket; print \"{REACHED}\\n\" if do {{ {body} }}; print $!+0'")
}

fn connect(name: &str) -> String {
    script(&format!(
        "socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un(\"{name}\"))"
    ))
}

/// One thing to try.
pub(crate) struct Attack {
    pub(crate) wall: &'static str,
    command: fn(&Bait) -> String,
    /// Whether it came to nothing.
    held: fn(&Bait, &str) -> bool,
}

fn not_reached(_: &Bait, output: &str) -> bool {
    !output.contains(REACHED) && !output.contains("secret")
}

pub(crate) const ATTACKS: &[Attack] = &[
    Attack {
        wall: "read files outside",
        command: |bait| format!("cat {}/closed/file; echo tried", bait.world.root.display()),
        held: |bait, output| not_reached(bait, output) && output.ends_with("tried\n"),
    },
    Attack {
        wall: "write files outside, including those opened for reading",
        command: |bait| {
            let root = bait.world.root.display();
            format!("echo x > {root}/readable/file; rm {root}/readable/file {root}/closed/file")
        },
        held: |bait, _| {
            let read = |folder: &str| {
                fs::read_to_string(bait.world.root.join(folder).join("file")).unwrap()
            };
            read("readable") == "secret" && read("closed") == "secret"
        },
    },
    Attack {
        wall: "change modes, times or attributes of files outside",
        command: |bait| {
            let root = bait.world.root.display();
            let each = ["closed", "readable"].map(|folder| {
                format!(
                    "$f = \"{root}/{folder}/file\"; chmod(0600, $f); utime(0, 0, $f); \
                     $n = \"user.x\"; syscall({}, $f, $n, $n, 1, 0);",
                    libc::SYS_setxattr
                )
            });
            format!("perl -e '{}'", each.concat())
        },
        held: |bait, _| {
            ["closed", "readable"].iter().all(|folder| {
                let path = bait.world.root.join(folder).join("file");
                let meta = fs::metadata(&path).unwrap();
                let mut value = [0; 8];
                let attribute = rustix::fs::getxattr(&path, "user.x", &mut value);
                meta.mode() & 0o777 != 0o600 && meta.mtime() != 0 && attribute.is_err()
            })
        },
    },
    Attack {
        wall: "change git's configuration or hooks in the folder",
        command: |_| {
            "echo evil > .git/config; echo evil > .git/hooks/x; mv .git/hooks .git/h; mv .git g; mkdir .git; echo evil > .git/commondir".into()
        },
        held: |bait, _| {
            let git = bait.world.cwd.join(".git");
            fs::read_to_string(git.join("config")).is_ok_and(|config| config.is_empty())
                && !git.join("hooks/x").exists()
                && !git.join("commondir").exists()
        },
    },
    Attack {
        wall: "reach the network",
        command: |bait| {
            let port = bait.tcp.local_addr().unwrap().port();
            format!("(: < /dev/tcp/127.0.0.1/{port}) && echo {REACHED}")
        },
        held: |bait, output| not_reached(bait, output) && bait.tcp.accept().is_err(),
    },
    Attack {
        wall: "reach a service on a Unix socket outside",
        command: |bait| connect(&format!("{}/closed/socket", bait.world.root.display())),
        held: |bait, output| not_reached(bait, output) && bait.listeners[0].accept().is_err(),
    },
    Attack {
        wall: "reach a service on an abstract Unix socket",
        command: |bait| connect(&format!("\\0{}", bait.abstract_name)),
        held: |bait, output| not_reached(bait, output) && bait.listeners[2].accept().is_err(),
    },
    Attack {
        wall: "reach a service on a Unix socket inside an opened folder",
        command: |bait| connect(&format!("{}/socket", bait.world.cwd.display())),
        held: |bait, output| not_reached(bait, output) && bait.listeners[1].accept().is_err(),
    },
    Attack {
        wall: "list other processes",
        command: |bait| format!("cat /proc/{}/cmdline && echo {REACHED}", bait.victim()),
        held: not_reached,
    },
    Attack {
        wall: "signal other processes",
        command: |bait| format!("kill -0 {} && echo {REACHED}", bait.victim()),
        held: not_reached,
    },
    Attack {
        wall: "trace other processes",
        command: |bait| {
            let (call, victim) = (libc::SYS_ptrace, bait.victim());
            script(&format!("syscall({call}, 0x4206, {victim}, 0, 0) == 0"))
        },
        held: not_reached,
    },
    Attack {
        wall: "change limits or priorities of other processes",
        command: |bait| {
            let (call, victim) = (libc::SYS_prlimit64, bait.victim());
            script(&format!(
                "$l = pack(\"QQ\", 7, 7); $p = setpriority(0, {victim}, 19); \
                 $p || syscall({call}, {victim}, 7, $l, 0) == 0"
            ))
        },
        held: |bait, output| {
            let limits = fs::read_to_string(format!("/proc/{}/limits", bait.victim())).unwrap();
            let files = limits.lines().find(|l| l.starts_with("Max open files"));
            not_reached(bait, output) && !files.unwrap().contains(" 7 ")
        },
    },
    Attack {
        wall: "read the user's kernel keyrings",
        command: |_| script(&format!("syscall({}, 0, -4, 1) > 0", libc::SYS_keyctl)),
        held: not_reached,
    },
    Attack {
        wall: "read System V shared memory",
        command: |bait| {
            let id = &bait.memory;
            script(&format!("shmread({id}, $b, 0, 6) && $b eq \"secret\""))
        },
        held: not_reached,
    },
    Attack {
        wall: "read POSIX shared memory",
        command: |bait| format!("cat {}", bait.shared.display()),
        held: not_reached,
    },
    Attack {
        wall: "use io_uring",
        command: |_| {
            format!(
                "perl -e '$! = 0; syscall({}, 1, 0); print $!+0'",
                libc::SYS_io_uring_setup
            )
        },
        // Permission denied, where the kernel would complain about the address.
        held: |_, output| output == "13",
    },
    Attack {
        wall: "create a user namespace",
        command: |_| {
            let flags = libc::CLONE_NEWUSER;
            script(&format!("syscall({}, {flags}) == 0", libc::SYS_unshare))
        },
        held: not_reached,
    },
    Attack {
        wall: "type into a terminal",
        command: |_| {
            "perl -e '$! = 0; $c = \"x\"; ioctl(STDIN, 0x5412, $c); print $!+0'".to_owned()
        },
        // Denied, where the kernel would complain that it is not a terminal.
        held: |_, output| output == "1",
    },
    Attack {
        wall: "continue after daemon and guardian are killed at the same time",
        command: |_| "echo > alive; exec 9> held; setsid sleep 1000 & wait".to_owned(),
        held: |_, _| unreachable!("tried by hand"),
    },
];

async fn holds(machine: &Machine, attack: &Attack) -> bool {
    let bait = Bait::new(machine);
    let walls = bait.tools.walls().await;
    assert_eq!(
        walls.namespaces, machine.namespaces,
        "{}: {walls:?}",
        machine.title
    );
    if attack.wall.starts_with("continue after") {
        return ends_with_its_guardian(&bait, &(attack.command)(&bait)).await;
    }
    let output = bait.run(&(attack.command)(&bait)).await;
    assert!(!output.content.contains("was not run"), "{output:?}");
    let said = output
        .content
        .rsplit_once("[exit")
        .map_or(output.content.as_str(), |(s, _)| s);
    (attack.held)(&bait, said)
}

/// Orphans are not adopted here, as if the daemon were gone too.
async fn ends_with_its_guardian(bait: &Bait, command: &str) -> bool {
    let (alive, held) = (bait.world.fifo("alive"), bait.world.fifo("held"));
    let test = async {
        alive.receive().await;
        let held = held.hold().await;
        let pid: i32 = fs::read_to_string(&bait.guardian)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let ended = held.closes_within_secs(if bait.tools.walls().await.are_complete() {
            10
        } else {
            0
        });
        if !ended {
            // Remaining processes are found by the pipe; this process may hold it under
            // the same number.
            let holders = Command::new("sh")
                .args(["-c", "for p in /proc/[0-9]*; do [ $p != /proc/$PPID ] && [ \"$(readlink $p/fd/9)\" = \"$0\" ] && kill -9 ${p#/proc/}; done; true"])
                .arg(bait.world.cwd.join("held"))
                .status();
            assert!(holders.is_ok());
        }
        ended
    };
    let (_, ended) = tokio::join!(bait.run(command), test);
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_wall_holds_where_the_table_says_so() {
    let test = "every_wall_holds_where_the_table_says_so";
    if !has_tools(test, &["perl"]) {
        return;
    }
    let walls = World::new().tools().walls().await;
    if walls
        .landlock
        .is_none_or(|version| !(6..9).contains(&version))
    {
        skip(
            test,
            &format!("the table is of landlock 6 to 8, here is {walls}"),
        );
        return;
    }
    if !std::path::Path::new("/dev/shm").is_dir() {
        skip(test, "there is no /dev/shm");
        return;
    }
    for machine in machines() {
        let walls = Bait::new(&machine).tools.walls().await;
        if walls.namespaces != machine.namespaces {
            skip(test, &format!("{}: {:?}", machine.title, walls.why));
            return;
        }
    }
    let mut columns = JoinSet::new();
    for (index, machine) in machines().into_iter().enumerate() {
        columns.spawn(async move {
            let mut cells = Vec::new();
            for attack in ATTACKS {
                cells.push(holds(&machine, attack).await);
            }
            (index, machine.title, cells)
        });
    }
    let mut table = columns.join_all().await;
    table.sort_unstable();
    let table: Vec<_> = table
        .into_iter()
        .map(|(_, title, cells)| (title, cells))
        .collect();
    compare(&page(&table));
}
