//! `ask` and `attach`: start or join one run and follow it to its end.

use crate::args::{Ask, Attach};
use crate::context::Context;
use crate::error::Error;
use crate::follow::{Answers, Follow, OnInterrupt};
use crate::stdin;
use crabtalk_proto::{AttachMsg, Image, StreamMsg};
use std::path::PathBuf;

/// Asks one question and prints the answer.
pub(crate) async fn ask(context: &mut Context, args: Ask) -> Result<(), Error> {
    let question = args.text.join(" ");
    let piped = stdin::piped(args.no_stdin)?;
    if let Some(note) = stdin::note(&piped) {
        context.console.screen.note(&note)?;
    }
    let content = stdin::append(&question, &piped);
    if content.trim().is_empty() {
        return Err(Error::Usage(
            "nothing to ask: write the question after `ask`, or pipe it in".to_owned(),
        ));
    }
    let images = images(&args.image)?;
    let client = context.client().await?;
    let request = StreamMsg {
        images,
        guest: args.guest,
        ..context.message(content)?
    };
    let follow = Follow {
        answers: if args.wait {
            Answers::Others
        } else {
            Answers::Person
        },
        ..context.follow()
    };
    let ended = follow.run(client.stream(request), &mut context.console);
    ended.await?.result()
}

/// Reads the images of a question; fails if any is invalid.
fn images(paths: &[PathBuf]) -> Result<Vec<Image>, Error> {
    let mut images = Vec::new();
    for path in paths {
        crate::shown::attach(&mut images, path)
            .map_err(|why| Error::Usage(format!("cannot show {}: {why}", path.display())))?;
    }
    Ok(images)
}

/// Follows the active run.
pub(crate) async fn attach(context: &mut Context, args: Attach) -> Result<(), Error> {
    let client = context.client().await?;
    let request = AttachMsg {
        agent: context.agent(),
        sender: context.sender(),
        after: args.after,
        run: args.run,
        ..AttachMsg::default()
    };
    let follow = Follow {
        answers: Answers::PersonOrOthers,
        on_interrupt: OnInterrupt::Leave,
        ..context.follow()
    };
    let ended = follow.run(client.attach(request), &mut context.console);
    ended.await?.result()
}
