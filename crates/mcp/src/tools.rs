//! The tools: their descriptions for models, and the dispatch of calls.

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

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::settings::Backend;
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::content::Reply;
use super::server::{Server, failure_response};

/// Definition of a tool.
struct ToolSpec {
    name: &'static str,
    title: &'static str,
    /// For models: when to use the tool, units, limits, an example.
    description: &'static str,
    /// The properties of the JSON Schema of its arguments.
    input_properties: &'static str,
    required: &'static [&'static str],
    /// The properties of the JSON Schema of its structured content.
    output_properties: &'static str,
    effect: Effect,
}

/// Effect of a tool, for the annotations that clients show to users.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Changes nothing.
    ReadOnly,
    /// Changes a file; the same call again changes nothing more.
    Idempotent,
    /// Changes something; the same call again changes it again.
    Modifies,
    /// Runs code, which can do anything.
    RunsCode,
}

/// All tools, in the order of the list.
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

/// Lists the tools.
pub(super) fn list() -> Vec<Tool> {
    static TOOL_LIST: OnceLock<Vec<Tool>> = OnceLock::new();
    TOOL_LIST
        .get_or_init(|| TOOLS.iter().map(|spec| spec.to_tool()).collect())
        .clone()
}

impl ToolSpec {
    fn to_tool(&self) -> Tool {
        let mut input = JsonObject::new();
        input.insert("type".to_owned(), "object".into());
        let mut properties = parse_schema(self.input_properties);
        if let Some(backend) = properties.get_mut("backend") {
            backend["enum"] = Backend::NAMES.into();
        }
        input.insert("properties".to_owned(), properties);
        if !self.required.is_empty() {
            input.insert("required".to_owned(), self.required.into());
        }
        let mut output = JsonObject::new();
        output.insert("type".to_owned(), "object".into());
        output.insert(
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
        Tool::new(self.name, self.description, Arc::new(input))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(output))
            .with_annotations(annotations)
    }
}

/// Parses a schema. A test checks that all of them are valid.
fn parse_schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A call of a tool.
struct ToolCall<'a> {
    server: &'a Server,
    context: &'a RequestContext<RoleServer>,
}

/// Executes a call. Failures become error replies, so that the model can react.
pub(super) async fn call(
    server: &Server,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let call = ToolCall {
        server,
        context: &context,
    };
    // The second call of an input request: it carries the answer.
    if let Some(handle) = &request.request_state {
        let taken = server
            .suspended_calls()
            .take(handle, request.input_responses.as_ref());
        let Some((suspended, answer)) = taken else {
            let message = "unknown requestState: the code has ended or waited too long for its answer; call again \
                           without requestState";
            return Err(ErrorData::invalid_params(message, None));
        };
        let response = call.resume(suspended, answer).await;
        return Ok(response.unwrap_or_else(|failure| failure_response(&failure)));
    }
    let response = match request.name.as_ref() {
        "read" => call.run_blocking(arguments, read::read).await,
        "edit" => call.run_blocking(arguments, edit::edit).await,
        "notebook" => call.run_blocking(arguments, notebook::notebook).await,
        "write" => call.run_blocking(arguments, write::write).await,
        "artifact" => call.run_blocking(arguments, artifact::artifact).await,
        "run" => run::run(&call, arguments).await,
        "eval" => eval::eval(&call, arguments).await,
        "runs" => runs::runs(&call, arguments).await,
        "kernels" => kernels::kernels(&call, arguments).await,
        other => {
            let names: Vec<&str> = TOOLS.iter().map(|spec| spec.name).collect();
            let message = format!(
                "there is no tool `{other}`; available: {}",
                names.join(", ")
            );
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    Ok(response.unwrap_or_else(|failure| failure_response(&failure)))
}

impl ToolCall<'_> {
    /// Runs a tool that only accesses files on a thread for blocking work.
    async fn run_blocking(
        &self,
        arguments: JsonObject,
        tool: fn(&Server, JsonObject) -> Result<Reply, Failure>,
    ) -> Result<CallToolResponse, Failure> {
        let server = self.server.clone();
        let done = tokio::task::spawn_blocking(move || tool(&server, arguments)).await;
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
    use std::collections::{BTreeMap, BTreeSet};

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

    fn names(properties: &Value) -> BTreeSet<&str> {
        let properties = properties.as_object().unwrap();
        properties.keys().map(String::as_str).collect()
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
            assert_eq!(names(&schema), accepted, "{name}");
        }
    }

    #[test]
    fn every_schema_names_the_fields_of_objects_in_lists() {
        let accepted = BTreeMap::from([
            (("run", "edits"), accepted::<cellwright_execution::Edit>()),
            (("eval", "cells"), accepted::<eval::CellArguments>()),
        ]);
        let schemas = TOOLS.map(|spec| (spec.name, parse_schema(spec.input_properties)));
        let mut listed = BTreeMap::new();
        for (tool, schema) in &schemas {
            for (argument, schema) in schema.as_object().unwrap() {
                if schema["items"]["type"] == "object" {
                    let fields = names(&schema["items"]["properties"]);
                    listed.insert((*tool, argument.as_str()), fields);
                }
            }
        }
        assert_eq!(listed, accepted);
    }

    #[test]
    fn every_schema_is_valid() {
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
    fn the_tool_list_stays_small() {
        let listed = serde_json::to_string(&list()).unwrap();
        assert!(listed.len() < 12_000, "{} bytes", listed.len());
    }
}
