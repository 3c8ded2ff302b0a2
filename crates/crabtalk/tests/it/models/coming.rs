//! Connecting to the provider while a message is typed (MODEL-8).

use crate::rig::{IDLE, TestEnv, Tmux, has_tools, within};
use crabtalk_testkit::scripted::{Script, Server, openai};

#[tokio::test]
async fn typing_connects_before_the_message_is_sent() {
    if !has_tools("typing_connects_before_the_message_is_sent", &["tmux"]) {
        return;
    }
    let model = Server::start(Script::openai([openai::text("Good day to you.")])).await;
    let env = TestEnv::new();
    env.config(&format!(
        "model = \"scripted\"\n[provider.scripted]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         api_key = \"sk-test\"\nmodels = [\"scripted\"]\n",
        model.url()
    ));
    let _daemon = env.daemon().await;
    let terminal = Tmux::open(&env, "\"$CRABTALK\"");
    terminal.shows(IDLE, 1).await;
    // Commands do not announce a message.
    terminal.types("/title A good day");
    terminal.types("!echo mine");
    terminal.shows("mine", 2).await;
    assert_eq!(model.progress().connections, 0);

    terminal.types_half("g");
    within("a connection", model.until(|p| p.connections == 1)).await;
    assert_eq!(model.progress().requests, 0, "nothing is asked");
    terminal.types("ood day");
    terminal.shows("Good day to you.", 1).await;
    assert_eq!(model.progress().requests, 1);
}
