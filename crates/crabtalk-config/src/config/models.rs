//! The `models` of a provider.

use super::{Model, Price};
use crate::Error;
use crate::reader::Section;
use crate::tree::{Node, Value};

/// Reads the models of a provider. `taken` holds those of the providers before
/// with their owners: a name belongs to one provider (MODEL-1).
pub(super) fn read_models(
    section: &mut Section<'_>,
    provider: &str,
    taken: &mut Vec<(String, String)>,
) -> Result<Vec<Model>, Error> {
    let Some(entry) = section.take("models") else {
        return Ok(Vec::new());
    };
    let expected = "expected a list of names, or of tables such as { name = \"x\" }";
    let Value::List(items) = &entry.node.value else {
        let message = format!("{expected}, found {}", entry.node.value.describe());
        return section.fail(entry.node.at, "models", &message);
    };
    let mut models = Vec::with_capacity(items.len());
    for item in items {
        let model = read_model(section, item, expected)?;
        if let Some((_, owner)) = taken.iter().find(|(name, _)| *name == model.name) {
            let message = format!("{:?} is a model of provider.{owner} already", model.name);
            return section.fail(item.at, "models", &message);
        }
        taken.push((model.name.clone(), provider.to_owned()));
        models.push(model);
    }
    Ok(models)
}

fn read_model(section: &Section<'_>, item: &Node, expected: &str) -> Result<Model, Error> {
    let model = match &item.value {
        Value::String(name) => Model {
            name: name.clone(),
            id: name.clone(),
            context: None,
            price: None,
            images: None,
        },
        Value::Table(_) => {
            let mut table = Section::new(section.source(), section.name("models"), item)?;
            let Some(name) = table.string("name")? else {
                return table.fail(item.at, "name", "missing, expected the model's name here");
            };
            let model = Model {
                id: table.string("id")?.unwrap_or_else(|| name.clone()),
                name,
                context: table.whole("context", 1, u64::MAX)?,
                price: price(&mut table)?,
                images: table.boolean("images")?,
            };
            table.finish();
            model
        }
        Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Date(_)
        | Value::List(_) => {
            let message = format!("{expected}, found {}", item.value.describe());
            return section.fail(item.at, "models", &message);
        }
    };
    if model.name.trim().is_empty() {
        return section.fail(item.at, "models", "a model's name must not be empty");
    }
    Ok(model)
}

fn price(table: &mut Section<'_>) -> Result<Option<Price>, Error> {
    let Some(mut section) = table.section("price")? else {
        return Ok(None);
    };
    let mut part = |key| match section.amount(key)? {
        Some(amount) => Ok(amount),
        None => section.fail(
            section.at,
            key,
            "missing, expected the price of a million tokens",
        ),
    };
    let price = Price {
        input: part("input")?,
        output: part("output")?,
    };
    section.finish();
    Ok(Some(price))
}
