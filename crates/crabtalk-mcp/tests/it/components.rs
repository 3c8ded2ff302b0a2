//! Components: servers on the loopback that port files announce.

use crate::support::{Offline, SERVER, World};
use crabtalk_component::PortFile;
use crabtalk_mcp::{FoundPort, Pace, Phase};
use crabtalk_testkit::tools::has_tools;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The component `search`; ends when it is dropped.
struct Component {
    child: Child,
    port: u16,
}

impl Component {
    async fn start(world: &World) -> Self {
        let file = world.folder().join("search.port");
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new("python3");
        command.args([SERVER, "http"]).arg(&file);
        let child = command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Some(port) = text.lines().next() {
                break port.parse().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        Self { child, port }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn found(&self, instance: &str) -> Vec<FoundPort> {
        let says = PortFile {
            port: self.port,
            instance: Some(instance.into()),
        };
        vec![FoundPort {
            name: "search".into(),
            says: Ok(says),
        }]
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn another_instance_at_the_same_port_ends_calls() {
    if !has_tools("another_instance_at_the_same_port", &["python3"]) {
        return;
    }
    let world = World::new(Offline, Pace::default());
    let component = Component::start(&world).await;
    world.servers.discover(component.found("one")).await;
    world.phase("search", Phase::Connected).await;
    let calling = world.call("search__slow", json!({"ms": 600_000}));
    let changing = async {
        world.until(|all| (all[0].calls == 1).then_some(())).await;
        world.servers.discover(component.found("other")).await;
    };
    let (answer, ()) = tokio::join!(calling, changing);
    assert!(answer.is_error, "{answer:?}");
    let now = world.phase("search", Phase::Connected).await;
    assert_eq!((now.instance.as_str(), now.connected), ("other", 2));
    world.echo("search").await;
}

#[tokio::test]
async fn hung_component_fails_calls_until_it_answers() {
    if !has_tools("hung_component_fails_calls", &["python3"]) {
        return;
    }
    let pace = Pace {
        ping: Duration::from_secs(1),
        answer: Duration::from_secs(1),
        hanging: Duration::from_secs(1),
        ..Pace::default()
    };
    let world = World::new(Offline, pace);
    let component = Component::start(&world).await;
    world.servers.discover(component.found("one")).await;
    world.phase("search", Phase::Connected).await;
    component.signal(Signal::STOP);
    world.phase("search", Phase::Hanging).await;
    let failed = world.call("search__echo", json!({})).await;
    assert!(failed.content.contains("hangs"), "{failed:?}");
    component.signal(Signal::CONT);
    world.phase("search", Phase::Connected).await;
    world.echo("search").await;
}

#[tokio::test]
async fn configuration_overrides_a_port_file() {
    if !has_tools("configuration_overrides_a_port_file", &["python3"]) {
        return;
    }
    let world = World::new(Offline, Pace::default());
    let component = Component::start(&world).await;
    let mut search = world.program(&[]);
    search.name = "search".into();
    world.servers.configure(vec![search]).await;
    world.servers.discover(component.found("one")).await;
    let all = world.servers.list();
    let seen: Vec<_> = all.iter().map(|one| (one.source, one.shadowed)).collect();
    assert_eq!(seen, [("config", false), ("port file", true)]);
    world.servers.first_look(|_| true).await;
    world.echo("search").await;
}
