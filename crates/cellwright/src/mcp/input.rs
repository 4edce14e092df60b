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
use super::words;
use crate::notice::UserNotice;
use crate::secret::random_token;

/// How long people may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// The name of the one field, and of the one request.
const REPLY_TIMEOUT: &str = "answer";

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
    let prompt = words::sentence(question.prompt.trim());
    let prompt = if prompt.is_empty() { "input" } else { &prompt };
    let mut message = format!("The running code asks: {prompt}");
    if question.secret {
        message.push_str(" (it will not be shown)");
    }
    let field = PrimitiveSchemaDefinition::String(StringSchema::new());
    let properties = BTreeMap::from([(REPLY_TIMEOUT.to_owned(), field)]);
    let schema = ElicitationSchema::new(properties).with_required(vec![REPLY_TIMEOUT.to_owned()]);
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
    let text = result.content?.get(REPLY_TIMEOUT)?.as_str()?.to_owned();
    Some(text)
}

/// A call whose code waits for what the client says in its next one.
pub(super) struct Parked {
    pub(super) conversation: Conversation,
    pub(super) session: Option<String>,
    pub(super) notices: Vec<UserNotice>,
}

impl Parked {
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
pub(super) struct Waiting(Arc<Mutex<HashMap<String, Parked>>>);

impl Waiting {
    /// Keeps a call for as long as people may take, and says what the client is asked for.
    pub(super) fn park(
        &self,
        parked: Parked,
        question: &Question,
    ) -> io::Result<InputRequiredResult> {
        let handle = random_token()?;
        self.all().insert(handle.clone(), parked);
        let (waiting, old) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            // Dropped, its code is cancelled: nobody will answer any more.
            waiting.all().remove(&old);
        });
        let request = InputRequest::Elicitation(ElicitRequest::new(params(question)));
        let requests = BTreeMap::from([(REPLY_TIMEOUT.to_owned(), request)]);
        Ok(InputRequiredResult::new(Some(requests), Some(handle)))
    }

    /// The call that a handle is for, and what the client's user said.
    pub(super) fn take(
        &self,
        handle: &str,
        responses: Option<&InputResponses>,
    ) -> Option<(Parked, Option<String>)> {
        let parked = self.all().remove(handle)?;
        let answer = responses
            .and_then(|responses| responses.get(REPLY_TIMEOUT))
            .and_then(|answer| ElicitResult::deserialize(answer).ok())
            .and_then(given);
        Some((parked, answer))
    }

    /// Nobody will answer.
    pub(super) fn clear(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
