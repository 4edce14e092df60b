//! Input requests of cells: asks the client's user, if the client supports elicitation.
//!
//! In older protocol revisions the server sends an elicitation request while the call waits. From 2026-07-28 on the
//! server replies to the call with the request and a handle, and the client calls again with the answer.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::secret::random_token;
use cellwright_host::reply::InputPrompt;
use cellwright_stdext::LockExt;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion,
    ServerRequest, StringSchema,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::PrimitiveSchemaDefinition};
use serde::Deserialize;

use super::followed_run::FollowedRun;
use super::wording;

/// How long the user has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);

/// Name of the only field of the form, and of the only request.
const ANSWER_FIELD: &str = "answer";

/// How the server can ask the client's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElicitationMode {
    /// The client does not support elicitation.
    Unsupported,
    /// With a request while the call waits.
    Request,
    /// With a reply that requires another call.
    MultiRoundTrip,
}

impl ElicitationMode {
    /// The mode of the client that made a call.
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

/// Sends an elicitation request. Returns `None` if the user declines or does not answer in time.
pub(super) async fn elicit(
    context: &RequestContext<RoleServer>,
    prompt: &InputPrompt,
) -> Option<String> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(elicit_params(prompt)));
    let sent = context.peer.send_request(request);
    tokio::select! {
        response = sent => match response.ok()? {
            ClientResult::ElicitResult(result) => accepted_answer(result),
            _ => None,
        },
        () = context.ct.cancelled() => None,
        () = tokio::time::sleep(ANSWER_TIMEOUT) => None,
    }
}

fn elicit_params(prompt: &InputPrompt) -> ElicitRequestParams {
    let text = wording::sanitize(prompt.prompt.trim());
    let text = if text.is_empty() { "input" } else { &text };
    let mut message = format!("The running code asks: {text}");
    if prompt.secret {
        message.push_str(" (the answer will not be shown)");
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

/// A call whose code waits for the answer that the client's next call carries.
pub(super) struct SuspendedCall {
    pub(super) run: FollowedRun,
    pub(super) session: Option<String>,
    pub(super) notices: Vec<UserNotice>,
}

impl SuspendedCall {
    pub(super) fn new(run: FollowedRun, session: Option<String>, notices: Vec<UserNotice>) -> Self {
        Self {
            run,
            session,
            notices,
        }
    }
}

/// Suspended calls, by random handles.
#[derive(Clone, Default)]
pub(super) struct SuspendedCalls(Arc<Mutex<HashMap<String, SuspendedCall>>>);

impl SuspendedCalls {
    /// Stores a call until its answer arrives or the time for it is over. Returns the reply that asks for the answer.
    pub(super) fn suspend(
        &self,
        call: SuspendedCall,
        prompt: &InputPrompt,
    ) -> io::Result<InputRequiredResult> {
        let handle = random_token()?;
        self.calls().insert(handle.clone(), call);
        let (calls, expired) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIMEOUT).await;
            // Dropping the call cancels its code.
            calls.calls().remove(&expired);
        });
        let request = InputRequest::Elicitation(ElicitRequest::new(elicit_params(prompt)));
        let requests = BTreeMap::from([(ANSWER_FIELD.to_owned(), request)]);
        Ok(InputRequiredResult::new(Some(requests), Some(handle)))
    }

    /// Removes the call with this handle and returns it with the user's answer.
    pub(super) fn take(
        &self,
        handle: &str,
        responses: Option<&InputResponses>,
    ) -> Option<(SuspendedCall, Option<String>)> {
        let call = self.calls().remove(handle)?;
        let answer = responses
            .and_then(|responses| responses.get(ANSWER_FIELD))
            .and_then(|response| ElicitResult::deserialize(response).ok())
            .and_then(accepted_answer);
        Some((call, answer))
    }

    /// Drops all calls, which cancels their code.
    pub(super) fn clear(&self) {
        self.calls().clear();
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, SuspendedCall>> {
        self.0.lock_ignoring_poison()
    }
}
