//! What code asks for with `input()`: the client's user is asked, where the client can.
//!
//! Older revisions have a request for it, while the call waits. Since 2026-07-28 a server does not ask: it
//! answers the call with what it needs and a handle, and the client calls again.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion,
    ServerRequest, StringSchema,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::PrimitiveSchemaDefinition};
use serde::Deserialize;
use tokio::time::Instant;

use super::conversation::{Conversation, Question};
use crate::bridge::random;

/// How long people may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// The name of the one field, and of the one request.
const ANSWER: &str = "answer";

/// How a client's user can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Not at all.
    None,
    /// By a request, while the call waits.
    Request,
    /// By an answer that asks for another call.
    Round,
}

impl Way {
    /// How the client of a call can be asked.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let capabilities = context.client_capabilities();
        if capabilities.is_none_or(|capabilities| capabilities.elicitation.is_none()) {
            return Self::None;
        }
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => {
                Self::Round
            }
            _ => Self::Request,
        }
    }
}

/// Asks the user by a request; `None` if they will not say.
pub(super) async fn ask(
    context: &RequestContext<RoleServer>,
    question: &Question,
) -> Option<String> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params(question)));
    let asked = context.peer.send_request(request);
    tokio::select! {
        answer = asked => match answer.ok()? {
            ClientResult::ElicitResult(result) => given(result),
            _ => None,
        },
        () = context.ct.cancelled() => None,
        () = tokio::time::sleep(PATIENCE) => None,
    }
}

fn params(question: &Question) -> ElicitRequestParams {
    let words = question.prompt.trim();
    let words = if words.is_empty() { "input" } else { words };
    let mut message = format!("The running code asks: {words}");
    if question.secret {
        message.push_str(" (it will not be shown)");
    }
    let field = PrimitiveSchemaDefinition::String(StringSchema::new());
    let properties = BTreeMap::from([(ANSWER.to_owned(), field)]);
    let schema = ElicitationSchema::new(properties).with_required(vec![ANSWER.to_owned()]);
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema,
    }
}

fn given(result: ElicitResult) -> Option<String> {
    if result.action != ElicitationAction::Accept {
        return None;
    }
    let text = result.content?.get(ANSWER)?.as_str()?.to_owned();
    Some(text)
}

/// Calls whose code waits for what the client says in its next one.
#[derive(Default)]
pub(super) struct Waiting(Mutex<HashMap<String, Parked>>);

struct Parked {
    conversation: Conversation,
    since: Instant,
}

impl Waiting {
    /// Keeps a conversation, and says what the client is asked for.
    pub(super) fn park(
        &self,
        conversation: Conversation,
        question: &Question,
    ) -> io::Result<InputRequiredResult> {
        let handle = random()?;
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropped, their code is cancelled: nobody will answer any more.
        parked.retain(|_, parked| parked.since.elapsed() < PATIENCE);
        let since = Instant::now();
        parked.insert(
            handle.clone(),
            Parked {
                conversation,
                since,
            },
        );
        let request = InputRequest::Elicitation(ElicitRequest::new(params(question)));
        let requests = BTreeMap::from([(ANSWER.to_owned(), request)]);
        Ok(InputRequiredResult::new(Some(requests), Some(handle)))
    }

    /// The conversation that a handle is for, and what the client's user said.
    pub(super) fn take(
        &self,
        handle: &str,
        responses: Option<&InputResponses>,
    ) -> Option<(Conversation, Option<String>)> {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let conversation = parked.remove(handle)?.conversation;
        let answer = responses
            .and_then(|responses| responses.get(ANSWER))
            .and_then(|answer| ElicitResult::deserialize(answer).ok())
            .and_then(given);
        Some((conversation, answer))
    }

    /// Nobody will answer.
    pub(super) fn clear(&self) {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parked.clear();
    }
}
