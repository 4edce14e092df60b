//! `schema`: prints the JSON Schema of a document.

mod documents;

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_diagnostics::suggest::nearest;
use clap::Args;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::console::Console;
use documents::DOCUMENTS;

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
The schema (JSON Schema 2020-12) describes the document that the verb prints on stdout with `--json`. A verb that fails \
prints an `error` document instead; `events` is a line that `--events` prints. The schema has exactly the fields that this \
version prints; programs should ignore fields that they do not know.

Without a verb, the names of all documents are listed.

Examples:
  cellwright schema
  cellwright schema run
  cellwright schema kernels list
  cellwright schema error")]
pub(crate) struct SchemaArgs {
    /// Verb with its action, `error` or `events`
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
}

/// The documents that have a schema.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SchemaList {
    /// Names of the documents.
    schemas: Vec<&'static str>,
}

/// Prints a schema, or the names of all documents.
pub(crate) fn schema(args: &SchemaArgs, console: &Console) -> Result<(), Failure> {
    let name = args.verb.join(" ");
    let names = DOCUMENTS.iter().map(|document| document.name);
    if name.is_empty() {
        if console.json {
            let schemas = names.collect();
            return console.print_json(&SchemaList { schemas });
        }
        let names: Vec<&str> = names.collect();
        return console.print(&format!("{}\n", names.join("\n")));
    }
    let Some(document) = DOCUMENTS.iter().find(|document| document.name == name) else {
        return Err(unknown_document(&name));
    };
    let text = serde_json::to_string_pretty(&document.schema()).map_err(std::io::Error::from)?;
    console.print(&format!("{text}\n"))
}

fn unknown_document(name: &str) -> Failure {
    let failure = Failure::new(
        Kind::BadArguments,
        format!("There is no JSON document `{name}`"),
    );
    let names = || DOCUMENTS.iter().map(|document| document.name);
    let actions: Vec<String> = names()
        .filter(|one| one.starts_with(&format!("{name} ")))
        .map(|one| format!("`{one}`"))
        .collect();
    if !actions.is_empty() {
        return failure.hint(format!("name the action: {}", actions.join(", ")));
    }
    match nearest(name, names()) {
        Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
        None => failure.hint(hint![command("schema"), " lists them"]),
    }
}

/// The JSON that a verb prints.
struct Document {
    /// The verb with its action.
    name: &'static str,
    /// The forms that the document can have.
    forms: &'static [fn(&mut schemars::SchemaGenerator) -> schemars::Schema],
}

impl Document {
    fn schema(&self) -> Value {
        let mut generator = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        let mut forms: Vec<Value> = self
            .forms
            .iter()
            .map(|form| form(&mut generator).to_value())
            .collect();
        let mut root = Map::new();
        root.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        root.insert(
            "title".to_owned(),
            json!(format!("cellwright {}", self.name)),
        );
        if let (1, Some(Value::Object(only))) = (forms.len(), forms.first_mut()) {
            only.remove("title");
            if let Some(description) = only.remove("description") {
                root.insert("description".to_owned(), description);
            }
            root.append(only);
        } else {
            root.insert("anyOf".to_owned(), Value::Array(forms));
        }
        let definitions = generator.take_definitions(false);
        if !definitions.is_empty() {
            root.insert("$defs".to_owned(), Value::Object(definitions));
        }
        let mut schema = schemars::Schema::from(root);
        Strict.transform(&mut schema);
        schema.to_value()
    }
}

/// Makes the schema of each object list all its fields.
struct Strict;

impl Transform for Strict {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        // Links in the documentation of the types.
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = text.replace("[`", "`").replace("`]", "`");
        }
        if object.contains_key("properties") && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
    }
}
