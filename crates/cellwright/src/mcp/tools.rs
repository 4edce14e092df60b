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
use super::server::{Server, failed};
use crate::failure::Failure;

/// A tool, as it is told to clients.
struct Told {
    name: &'static str,
    title: &'static str,
    /// For models: when to use it, units, limits, an example.
    description: &'static str,
    /// JSON Schema of its arguments: only the properties.
    arguments: &'static str,
    required: &'static [&'static str],
    /// JSON Schema of its structured content: only the properties.
    answer: &'static str,
    effect: Effect,
}

/// What it does to the world.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// It changes a file; the same call again changes nothing more.
    Replaces,
    /// It changes something; the same call again does it again.
    Changes,
    /// It runs code, which can do anything.
    Runs,
}

/// In the order in which they are listed.
const TOOLS: [&Told; 9] = [
    &read::TOLD,
    &edit::TOLD,
    &notebook::TOLD,
    &write::TOLD,
    &run::TOLD,
    &eval::TOLD,
    &runs::TOLD,
    &kernels::TOLD,
    &artifact::TOLD,
];

/// All tools, as they are listed.
pub(super) fn list() -> Vec<Tool> {
    static LISTED: OnceLock<Vec<Tool>> = OnceLock::new();
    LISTED
        .get_or_init(|| TOOLS.iter().map(|told| told.tool()).collect())
        .clone()
}

impl Told {
    fn tool(&self) -> Tool {
        let mut arguments = JsonObject::new();
        arguments.insert("type".to_owned(), "object".into());
        arguments.insert("properties".to_owned(), parsed(self.arguments));
        if !self.required.is_empty() {
            arguments.insert("required".to_owned(), self.required.into());
        }
        let mut answer = JsonObject::new();
        answer.insert("type".to_owned(), "object".into());
        answer.insert("properties".to_owned(), parsed(self.answer));
        let effect = self.effect;
        let annotations = ToolAnnotations::from_raw(
            None,
            Some(effect == Effect::Reads),
            (effect != Effect::Reads).then_some(true),
            (effect == Effect::Replaces).then_some(true),
            None,
        );
        Tool::new(self.name, self.description, Arc::new(arguments))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(answer))
            .with_annotations(annotations)
    }
}

/// A schema of ours. A test sees to it that all of them can be read.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A call under way.
struct Call<'a> {
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
    let call = Call {
        server,
        context: &context,
    };
    // A client that was asked for something calls again with it.
    if let Some(handle) = &request.request_state {
        let taken = server
            .waiting()
            .take(handle, request.input_responses.as_ref());
        let Some((parked, answer)) = taken else {
            let words = "nothing waits for this requestState: its code has ended or waited too long, or it was \
                         never given out; call again without it";
            return Err(ErrorData::invalid_params(words, None));
        };
        let told = call.go_on(parked, answer).await;
        return Ok(told.unwrap_or_else(|failure| failed(&failure)));
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
            let names: Vec<&str> = TOOLS.iter().map(|told| told.name).collect();
            let words = format!("there is no tool `{other}`; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(words, None));
        }
    };
    Ok(answer.unwrap_or_else(|failure| failed(&failure)))
}

impl Call<'_> {
    /// Work on files, away from the threads that talk.
    async fn file(
        &self,
        given: JsonObject,
        work: fn(&Server, JsonObject) -> Result<Reply, Failure>,
    ) -> Result<CallToolResponse, Failure> {
        let server = self.server.clone();
        let done = tokio::task::spawn_blocking(move || work(&server, given)).await;
        let reply = done.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(Failure::bug(panic.as_ref())),
            Err(error) => Err(std::io::Error::other(error).into()),
        })?;
        self.server.subscriptions().look();
        Ok(reply.into_result().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_can_be_read() {
        for told in TOOLS {
            assert!(parsed(told.arguments).is_object(), "{}", told.name);
            assert!(parsed(told.answer).is_object(), "{}", told.name);
            let arguments = parsed(told.arguments);
            for name in told.required {
                assert!(arguments.get(name).is_some(), "{} {name}", told.name);
            }
        }
    }

    #[test]
    fn a_model_can_afford_to_know_them_all() {
        let listed = serde_json::to_string(&list()).unwrap();
        assert!(listed.len() < 12_000, "{} bytes", listed.len());
    }
}
