//! `provost schema`: prints the formats that are read and written, as JSON Schema.

use clap::Args;
use provost_core::code::Code;
use provost_core::schema::Format;
use provost_engine::bundle::formats::FORMATS;
use serde::Serialize;

use crate::answer::{Answer, Answered, Failure, Outcome};

#[cfg(not(feature = "formats"))]
use provost_core::schema;
#[cfg(feature = "formats")]
use provost_formats::schema;

#[derive(Args)]
pub(super) struct Schema {
    /// The schema to print [default: list all].
    name: Option<String>,
}

pub(super) fn run(schema: &Schema) -> Outcome {
    let Some(name) = &schema.name else {
        let mut schemas: Vec<&str> = all().map(|format| format.name).collect();
        schemas.sort_unstable();
        return Ok(SchemaNames { schemas }.into());
    };
    let Some(format) = all().find(|format| format.is_called(name)) else {
        let reason = format!("there is no schema `{name}`");
        return Err(Failure::new(Code::NotFound, reason).hint("`provost schema` lists them"));
    };
    Ok(Answer::data(format.schema(), format.text()))
}

/// The formats of documents, and those of files in sealed directories.
fn all() -> impl Iterator<Item = &'static Format> {
    schema::formats().chain(FORMATS)
}

#[derive(Serialize)]
struct SchemaNames {
    schemas: Vec<&'static str>,
}

impl Answered for SchemaNames {
    fn text(&self) -> String {
        self.schemas.join("\n")
    }
}
