//! The tools: what a model is told of each, and where its calls go.

mod artifact;
mod change;
mod edit;
mod eval;
mod kernels;
mod notebook;
mod read;
mod report;
mod run;
mod runs;
mod write;

use std::sync::{Arc, OnceLock};

use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

pub(super) use kernels::sessions;

use super::content::Reply;
use super::server::{Server, failure_response};
use crate::failure::Failure;

/// A tool, as it is told to clients.
struct ToolSpec {
    name: &'static str,
    title: &'static str,
    /// For models: when to use it, units, limits, an example.
    description: &'static str,
    /// JSON Schema of its arguments: only the properties.
    input_properties: &'static str,
    required: &'static [&'static str],
    /// JSON Schema of its structured content: only the properties.
    output_properties: &'static str,
    effect: Effect,
}

/// What it does to the world.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    ReadOnly,
    /// It changes a file; the same call again changes nothing more.
    Idempotent,
    /// It changes something; the same call again does it again.
    Modifies,
    /// It runs code, which can do anything.
    RunsCode,
}

/// In the order in which they are listed.
const TOOLS: [&ToolSpec; 9] = [
    &read::SPEC,
    &edit::SPEC,
    &notebook::SPEC,
    &write::SPEC,
    &run::SPEC,
    &eval::SPEC,
    &runs::SPEC,
    &kernels::SPEC,
    &artifact::SPEC,
];

/// All tools, as they are listed.
pub(super) fn list() -> Vec<Tool> {
    static LISTED: OnceLock<Vec<Tool>> = OnceLock::new();
    LISTED
        .get_or_init(|| TOOLS.iter().map(|spec| spec.tool()).collect())
        .clone()
}

impl ToolSpec {
    fn tool(&self) -> Tool {
        let mut arguments = JsonObject::new();
        arguments.insert("type".to_owned(), "object".into());
        arguments.insert("properties".to_owned(), parse_schema(self.input_properties));
        if !self.required.is_empty() {
            arguments.insert("required".to_owned(), self.required.into());
        }
        let mut answer = JsonObject::new();
        answer.insert("type".to_owned(), "object".into());
        answer.insert(
            "properties".to_owned(),
            parse_schema(self.output_properties),
        );
        let effect = self.effect;
        let annotations = ToolAnnotations::from_raw(
            None,
            Some(effect == Effect::ReadOnly),
            (effect != Effect::ReadOnly).then_some(true),
            (effect == Effect::Idempotent).then_some(true),
            None,
        );
        Tool::new(self.name, self.description, Arc::new(arguments))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(answer))
            .with_annotations(annotations)
    }
}

/// A schema of ours. A test sees to it that all of them can be read.
fn parse_schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A call under way.
struct ToolCall<'a> {
    server: &'a Server,
    context: &'a RequestContext<RoleServer>,
}

/// Carries out a call. What goes wrong is told to the model, which can do something about it.
pub(super) async fn call(
    server: &Server,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let given = request.arguments.unwrap_or_default();
    let call = ToolCall {
        server,
        context: &context,
    };
    // A client that was asked for something calls again with it.
    if let Some(handle) = &request.request_state {
        let taken = server
            .suspended_calls()
            .take(handle, request.input_responses.as_ref());
        let Some((parked, answer)) = taken else {
            let words = "nothing waits for this requestState: its code has ended or waited too long, or it was \
                         never given out; call again without it";
            return Err(ErrorData::invalid_params(words, None));
        };
        let told = call.go_on(parked, answer).await;
        return Ok(told.unwrap_or_else(|failure| failure_response(&failure)));
    }
    let answer = match request.name.as_ref() {
        "read" => call.file(given, read::read).await,
        "edit" => call.file(given, edit::edit).await,
        "notebook" => call.file(given, notebook::notebook).await,
        "write" => call.file(given, write::write).await,
        "artifact" => call.file(given, artifact::artifact).await,
        "run" => run::run(&call, given).await,
        "eval" => eval::eval(&call, given).await,
        "runs" => runs::runs(&call, given).await,
        "kernels" => kernels::kernels(&call, given).await,
        other => {
            let names: Vec<&str> = TOOLS.iter().map(|spec| spec.name).collect();
            let words = format!("there is no tool `{other}`; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(words, None));
        }
    };
    Ok(answer.unwrap_or_else(|failure| failure_response(&failure)))
}

impl ToolCall<'_> {
    /// Work on files, away from the threads that talk.
    async fn file(
        &self,
        given: JsonObject,
        work: fn(&Server, JsonObject) -> Result<Reply, Failure>,
    ) -> Result<CallToolResponse, Failure> {
        let server = self.server.clone();
        let done = tokio::task::spawn_blocking(move || work(&server, given)).await;
        let reply = done.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(Failure::from_panic(panic.as_ref())),
            Err(error) => Err(std::io::Error::other(error).into()),
        })?;
        self.server.subscriptions().check_now();
        Ok(reply.into_result().into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::{Deserialize, Deserializer, Error as _, Visitor, value::Error};
    use serde::forward_to_deserialize_any;

    use super::*;

    /// Records the field names that a struct's deserializer accepts.
    struct FieldNames<'a>(&'a mut Vec<&'static str>);

    impl<'de> Deserializer<'de> for FieldNames<'_> {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
            Err(Error::custom("not a struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _name: &'static str,
            fields: &'static [&'static str],
            _visitor: V,
        ) -> Result<V::Value, Error> {
            self.0.extend(fields);
            Err(Error::custom("only the names are needed"))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    fn accepted<'de, T: Deserialize<'de>>() -> BTreeSet<&'static str> {
        let mut names = Vec::new();
        T::deserialize(FieldNames(&mut names)).err();
        names.into_iter().collect()
    }

    #[test]
    fn every_schema_names_the_arguments_that_its_tool_accepts() {
        let accepted = [
            ("read", accepted::<read::Arguments>()),
            ("edit", accepted::<edit::Arguments>()),
            ("notebook", accepted::<notebook::Arguments>()),
            ("write", accepted::<write::Arguments>()),
            ("run", accepted::<run::Arguments>()),
            ("eval", accepted::<eval::Arguments>()),
            ("runs", accepted::<runs::Arguments>()),
            ("kernels", accepted::<kernels::Arguments>()),
            ("artifact", accepted::<artifact::Arguments>()),
        ];
        assert_eq!(accepted.len(), TOOLS.len());
        for (spec, (name, accepted)) in TOOLS.into_iter().zip(accepted) {
            assert_eq!(spec.name, name);
            let schema = parse_schema(spec.input_properties);
            let listed = schema.as_object().unwrap().keys().map(String::as_str);
            assert_eq!(listed.collect::<BTreeSet<_>>(), accepted, "{name}");
        }
    }

    #[test]
    fn every_schema_can_be_read() {
        for spec in TOOLS {
            assert!(
                parse_schema(spec.input_properties).is_object(),
                "{}",
                spec.name
            );
            assert!(
                parse_schema(spec.output_properties).is_object(),
                "{}",
                spec.name
            );
            let arguments = parse_schema(spec.input_properties);
            for name in spec.required {
                assert!(arguments.get(name).is_some(), "{} {name}", spec.name);
            }
        }
    }

    #[test]
    fn a_model_can_afford_to_know_them_all() {
        let listed = serde_json::to_string(&list()).unwrap();
        assert!(listed.len() < 12_000, "{} bytes", listed.len());
    }
}
