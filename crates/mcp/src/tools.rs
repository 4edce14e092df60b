//! The tools: their descriptions for models, and the dispatch of calls.

mod artifact;
mod change;
mod check;
mod diff;
mod edit;
mod eval;
mod interpreter;
mod kernels;
mod notebook;
mod read;
mod report;
mod run;
mod runs;
mod stop;
mod write;

use std::sync::Arc;

use cellwright_diagnostics::failure::Failure;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, JsonObject, MetaObject, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::arguments::{Argument, object_schema};
use super::content::Reply;
use super::server::{Server, ServerOptions, failure_response};
use super::wording;

/// Definition of a tool.
struct ToolSpec {
    name: &'static str,
    title: &'static str,
    /// For models: what the tool does in the first words, then units, limits, an example.
    description: &'static str,
    /// Words that a model searches for, for hosts that list only names.
    search_hint: &'static str,
    /// Whether hosts that load tools on demand load this one at once.
    is_main: bool,
    arguments: &'static [Argument],
    /// The properties of the JSON Schema of its structured content.
    output_properties: &'static str,
    effect: Effect,
}

/// Effect of a tool, for the annotations by which hosts ask for approval.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Changes nothing.
    ReadOnly,
    /// Changes a file; the same call again changes nothing more.
    Idempotent,
    /// Changes a file or a session; the same call again changes it again.
    Modifies,
    /// Runs code, which can do anything.
    RunsCode,
}

/// All tools, in the order of the list.
const TOOLS: [&ToolSpec; 10] = [
    &read::SPEC,
    &edit::SPEC,
    &notebook::SPEC,
    &write::SPEC,
    &run::SPEC,
    &eval::SPEC,
    &runs::SPEC,
    &kernels::SPEC,
    &stop::SPEC,
    &artifact::SPEC,
];

/// Lists the tools.
pub(super) fn list(options: &ServerOptions) -> Vec<Tool> {
    TOOLS.iter().map(|spec| spec.to_tool(options)).collect()
}

impl ToolSpec {
    fn to_tool(&self, options: &ServerOptions) -> Tool {
        let input = into_object(object_schema(self.arguments));
        let effect = self.effect;
        let reads = effect == Effect::ReadOnly;
        // Omitted hints have the defaults of the protocol: not read-only, destructive, open world.
        let annotations = ToolAnnotations::from_raw(
            None,
            reads.then_some(true),
            None,
            (effect == Effect::Idempotent).then_some(true),
            (effect != Effect::RunsCode).then_some(false),
        );
        let name = format!("{}{}", options.tool_prefix, self.name);
        let mut tool = Tool::new(name, self.description, Arc::new(input))
            .with_title(self.title)
            .with_annotations(annotations)
            .with_meta(self.meta());
        if options.structured {
            let mut output = JsonObject::new();
            output.insert("type".to_owned(), "object".into());
            output.insert(
                "properties".to_owned(),
                parse_schema(self.output_properties),
            );
            tool = tool.with_raw_output_schema(Arc::new(output));
        }
        tool
    }

    /// Metadata for hosts that load tools on demand.
    fn meta(&self) -> MetaObject {
        let mut meta = JsonObject::new();
        if self.is_main {
            meta.insert("anthropic/alwaysLoad".to_owned(), true.into());
        }
        meta.insert("anthropic/searchHint".to_owned(), self.search_hint.into());
        MetaObject(meta)
    }
}

fn into_object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
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
        return Ok(response.unwrap_or_else(|failure| failure_response(&failure, server.options())));
    }
    let prefix = &server.options().tool_prefix;
    let name = request.name.strip_prefix(prefix.as_str());
    let response = match name.unwrap_or(&request.name) {
        "read" => call.run_blocking(arguments, read::read).await,
        "edit" => call.run_blocking(arguments, edit::edit).await,
        "notebook" => call.run_blocking(arguments, notebook::notebook).await,
        "write" => call.run_blocking(arguments, write::write).await,
        "artifact" => call.run_blocking(arguments, artifact::artifact).await,
        "run" => run::run(&call, arguments).await,
        "eval" => eval::eval(&call, arguments).await,
        "runs" => runs::runs(&call, arguments).await,
        "kernels" => kernels::kernels(&call, arguments).await,
        "stop" => stop::stop(&call, arguments).await,
        other => {
            let names: Vec<&str> = TOOLS.iter().map(|spec| spec.name).collect();
            let message = format!(
                "there is no tool `{}`; available: {}",
                wording::sanitize_name(other),
                names.join(", ")
            );
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    Ok(response.unwrap_or_else(|failure| failure_response(&failure, server.options())))
}

impl ToolCall<'_> {
    /// Converts a reply into the response of the call.
    fn respond(&self, reply: Reply) -> CallToolResponse {
        reply.into_result(self.server.options().structured).into()
    }

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
        Ok(self.respond(reply))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde::de::{Deserialize, Deserializer, Error as _, Visitor, value::Error};
    use serde::forward_to_deserialize_any;

    use super::*;
    use crate::tool_names::TOOL_NAMES;

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

    fn options() -> ServerOptions {
        ServerOptions {
            roots: Vec::new(),
            start_dir: "/".into(),
            text_limit: 10_000,
            wait: None,
            structured: false,
            tool_prefix: String::new(),
        }
    }

    fn schema(spec: &ToolSpec) -> Value {
        object_schema(spec.arguments)
    }

    fn names(properties: &Value) -> BTreeSet<&str> {
        let properties = properties.as_object().unwrap();
        properties.keys().map(String::as_str).collect()
    }

    fn accepted<'de, T: Deserialize<'de>>() -> BTreeSet<&'static str> {
        let mut names = Vec::new();
        T::deserialize(FieldNames(&mut names)).err();
        // `Edit` has another name for the field `index`.
        names.into_iter().filter(|name| *name != "to").collect()
    }

    #[test]
    fn every_schema_names_the_arguments_that_its_tool_accepts() {
        let accepted = [
            ("read", accepted::<read::Arguments>()),
            ("edit", accepted::<edit::Arguments>()),
            ("notebook", accepted::<notebook::Arguments>()),
            ("write", accepted::<write::Arguments>()),
            ("run", {
                let mut fields = accepted::<run::Arguments>();
                fields.insert("to");
                fields
            }),
            ("eval", accepted::<eval::Arguments>()),
            ("runs", accepted::<runs::Arguments>()),
            ("kernels", accepted::<kernels::Arguments>()),
            ("stop", accepted::<stop::Arguments>()),
            ("artifact", accepted::<artifact::Arguments>()),
        ];
        assert_eq!(accepted.len(), TOOLS.len());
        for ((spec, (name, accepted)), listed) in TOOLS.into_iter().zip(accepted).zip(TOOL_NAMES) {
            assert_eq!((spec.name, listed), (name, name));
            let schema = schema(spec);
            assert_eq!(names(&schema["properties"]), accepted, "{name}");
        }
    }

    #[test]
    fn every_schema_names_the_fields_of_objects_in_lists() {
        let accepted = BTreeMap::from([
            (("run", "edits"), accepted::<cellwright_execution::Edit>()),
            (("eval", "cells"), accepted::<eval::CellArguments>()),
        ]);
        let schemas = TOOLS.map(|spec| (spec.name, schema(spec)));
        let mut listed = BTreeMap::new();
        for (tool, schema) in &schemas {
            for (argument, schema) in schema["properties"].as_object().unwrap() {
                if schema["items"]["type"] == "object" {
                    let fields = names(&schema["items"]["properties"]);
                    listed.insert((*tool, argument.as_str()), fields);
                }
            }
        }
        assert_eq!(listed, accepted);
    }

    #[test]
    fn every_argument_of_run_is_documented() {
        for (name, schema) in schema(&run::SPEC)["properties"].as_object().unwrap() {
            let is_described = schema.get("description").is_some();
            let is_explained = run::SPEC.description.contains(&format!("`{name}`"));
            assert!(is_described || is_explained || name == "path", "{name}");
        }
    }

    #[test]
    fn every_description_begins_with_words_that_a_model_searches_for() {
        for spec in TOOLS {
            let start: String = spec.description.chars().take(100).collect();
            assert!(start.contains("Jupyter notebook"), "{}: {start}", spec.name);
            assert!(spec.search_hint.contains("jupyter"), "{}", spec.name);
            assert!(
                parse_schema(spec.output_properties).is_object(),
                "{}",
                spec.name
            );
        }
    }

    #[test]
    fn the_tool_list_stays_small() {
        let listed = serde_json::to_string(&list(&options())).unwrap();
        assert!(listed.len() < 14_000, "{} bytes", listed.len());
    }
}
