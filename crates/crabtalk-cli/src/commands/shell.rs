//! `completions` and `man`: shell completions and manual pages, generated from the
//! definition of the command line.

use super::Context;
use crate::args::{Cli, Completions, Man};
use crate::completions::script;
use crate::error::Error;
use clap::CommandFactory;
use serde_json::json;
use std::path::Path;

const PROGRAM: &str = "crabtalk";

pub(super) fn completions(context: &mut Context, args: &Completions) -> Result<(), Error> {
    let script = script(args.shell).map_err(|e| Error::io("write the script", &e))?;
    print(context, "script", &script)
}

pub(super) fn man(context: &mut Context, args: &Man) -> Result<(), Error> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|e| Error::io("write the manual", &e))?;
        return print(context, "page", &String::from_utf8_lossy(&page));
    };
    let failed = |e| Error::io(format_args!("write the manual to {}", dir.display()), &e);
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
    let count = pages(dir);
    let said = format!("crabtalk: wrote {count} pages to {}", dir.display());
    context.done(
        json!({"dir": dir.display().to_string(), "pages": count}),
        &said,
    )
}

fn pages(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_page = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(PROGRAM) && name.ends_with(".1")
    };
    entries.filter(is_page).count()
}

fn print(context: &mut Context, name: &str, text: &str) -> Result<(), Error> {
    let screen = &mut context.console.screen;
    if context.global.json {
        return Ok(screen.json(&json!({ name: text }))?);
    }
    screen.answer(text)?;
    Ok(screen.end_line()?)
}
