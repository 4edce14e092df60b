//! What code asks for with `input()`: the client's user is asked, where the client can.
//!
//! Older revisions have a request for it, while the call waits. Since 2026-07-28 a server does not ask: it
//! answers the call with what it needs and a handle, and the client calls again.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion,
    ServerRequest, StringSchema,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::PrimitiveSchemaDefinition};
use serde::Deserialize;

use super::conversation::{Conversation, Question};
use super::wording;
use crate::notice::UserNotice;
use crate::secret::random_token;

/// How long people may take.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);

/// The name of the one field, and of the one request.
const ANSWER_FIELD: &str = "answer";

/// How a client's user can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElicitationMode {
    /// Not at all.
    Unsupported,
    /// By a request, while the call waits.
    Request,
    /// By an answer that asks for another call.
    MultiRoundTrip,
}

impl ElicitationMode {
    /// How the client of a call can be asked.
    pub(super) fn from_context(context: &RequestContext<RoleServer>) -> Self {
        let capabilities = context.client_capabilities();
        if capabilities.is_none_or(|capabilities| capabilities.elicitation.is_none()) {
            return Self::Unsupported;
        }
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => {
                Self::MultiRoundTrip
            }
            _ => Self::Request,
        }
    }
}

/// Asks the user by a request; `None` if they will not say.
pub(super) async fn elicit(
    context: &RequestContext<RoleServer>,
    question: &Question,
) -> Option<String> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(elicit_params(question)));
    let asked = context.peer.send_request(request);
    tokio::select! {
        answer = asked => match answer.ok()? {
            ClientResult::ElicitResult(result) => accepted_answer(result),
            _ => None,
        },
        () = context.ct.cancelled() => None,
        () = tokio::time::sleep(ANSWER_TIMEOUT) => None,
    }
}

fn elicit_params(question: &Question) -> ElicitRequestParams {
    let prompt = wording::sanitize(question.prompt.trim());
    let prompt = if prompt.is_empty() { "input" } else { &prompt };
    let mut message = format!("The running code asks: {prompt}");
    if question.secret {
        message.push_str(" (it will not be shown)");
    }
    let field = PrimitiveSchemaDefinition::String(StringSchema::new());
    let properties = BTreeMap::from([(ANSWER_FIELD.to_owned(), field)]);
    let schema = ElicitationSchema::new(properties).with_required(vec![ANSWER_FIELD.to_owned()]);
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema,
    }
}

fn accepted_answer(result: ElicitResult) -> Option<String> {
    if result.action != ElicitationAction::Accept {
        return None;
    }
    let text = result.content?.get(ANSWER_FIELD)?.as_str()?.to_owned();
    Some(text)
}

/// A call whose code waits for what the client says in its next one.
pub(super) struct SuspendedCall {
    pub(super) conversation: Conversation,
    pub(super) session: Option<String>,
    pub(super) notices: Vec<UserNotice>,
}

impl SuspendedCall {
    pub(super) fn new(
        conversation: Conversation,
        session: Option<String>,
        notices: Vec<UserNotice>,
    ) -> Self {
        Self {
            conversation,
            session,
            notices,
        }
    }
}

/// Such calls, by handles that nobody can guess.
#[derive(Clone, Default)]
pub(super) struct SuspendedCalls(Arc<Mutex<HashMap<String, SuspendedCall>>>);

impl SuspendedCalls {
    /// Keeps a call for as long as people may take, and says what the client is asked for.
    pub(super) fn suspend(
        &self,
        call: SuspendedCall,
        question: &Question,
    ) -> io::Result<InputRequiredResult> {
        let handle = random_token()?;
        self.calls().insert(handle.clone(), call);
        let (waiting, old) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIMEOUT).await;
            // Dropped, its code is cancelled: nobody will answer any more.
            waiting.calls().remove(&old);
        });
        let request = InputRequest::Elicitation(ElicitRequest::new(elicit_params(question)));
        let requests = BTreeMap::from([(ANSWER_FIELD.to_owned(), request)]);
        Ok(InputRequiredResult::new(Some(requests), Some(handle)))
    }

    /// The call that a handle is for, and what the client's user said.
    pub(super) fn take(
        &self,
        handle: &str,
        responses: Option<&InputResponses>,
    ) -> Option<(SuspendedCall, Option<String>)> {
        let call = self.calls().remove(handle)?;
        let answer = responses
            .and_then(|responses| responses.get(ANSWER_FIELD))
            .and_then(|answer| ElicitResult::deserialize(answer).ok())
            .and_then(accepted_answer);
        Some((call, answer))
    }

    /// Nobody will answer.
    pub(super) fn clear(&self) {
        self.calls().clear();
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, SuspendedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
