//! Queries, which run no user code, as Jupyter messages.

use std::pin::pin;

use cellwright_jupyter::connection::Channel;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    ABORT_RETRY_DELAY, ABORTS_MAX, ChannelEvent, Channels, EventResult, Jupyter, Lifecycle, python,
};
use crate::error::{Begun, KernelError};
use crate::kernel::KernelQuery;
use crate::stop::StopSignal;

impl<C: Channels, L: Lifecycle> Jupyter<C, L> {
    pub(super) async fn send_query(
        &mut self,
        query: &KernelQuery,
        stop: &StopSignal,
    ) -> Result<Value, KernelError> {
        if let KernelQuery::Variables { .. } | KernelQuery::Helpers = query {
            return self.query_hooks(query, stop).await;
        }
        let (msg_type, content) = match query {
            KernelQuery::Complete { code, cursor } => (
                "complete_request",
                json!({"code": code, "cursor_pos": cursor}),
            ),
            KernelQuery::Inspect {
                code,
                cursor,
                include_source: source,
            } => (
                "inspect_request",
                json!({"code": code, "cursor_pos": cursor, "detail_level": u8::from(*source)}),
            ),
            KernelQuery::IsComplete { code } => ("is_complete_request", json!({"code": code})),
            _ => (
                "history_request",
                json!({
                    "hist_access_type": "range", "session": 0, "start": 1, "stop": null,
                    "raw": true, "output": true,
                }),
            ),
        };
        let reply = self.request_reply(msg_type, &content, stop).await?;
        Ok(match query {
            KernelQuery::Complete { cursor, .. } => {
                let matches = reply["matches"].as_array().into_iter().flatten();
                let position = |name: &str| reply[name].as_u64().unwrap_or(*cursor as u64);
                json!({
                    "matches": matches.filter(|one| one.is_string()).collect::<Vec<_>>(),
                    "start": position("cursor_start"),
                    "end": position("cursor_end"),
                })
            }
            KernelQuery::Inspect { .. } => json!({
                "found": reply["found"].as_bool().unwrap_or_default(),
                "data": reply["data"].as_object().cloned().unwrap_or_default(),
            }),
            KernelQuery::History { last } => history(&reply, *last),
            _ => json!({
                "status": reply["status"].as_str().unwrap_or("unknown"),
                "indent": reply["indent"].as_str().unwrap_or_default(),
            }),
        })
    }

    /// Sends a query that only the hooks inside the kernel can answer.
    async fn query_hooks(
        &mut self,
        query: &KernelQuery,
        stop: &StopSignal,
    ) -> Result<Value, KernelError> {
        let request = self.hooks.as_ref().map(|hooks| match query {
            KernelQuery::Variables { limit } => hooks.variables(*limit),
            _ => hooks.helpers(),
        });
        let Some(request) = request else {
            let language = self
                .description
                .language
                .as_deref()
                .unwrap_or("this language");
            let message = format!("this query is not supported for {language}");
            return Err(KernelError::QueryFailed { message });
        };
        let content = request.content();
        let reply = self
            .request_reply("execute_request", &content, stop)
            .await?;
        python::reply_answer(&reply).map_err(|message| KernelError::QueryFailed { message })
    }

    /// Sends a request and waits for its reply.
    pub(super) async fn request_reply(
        &mut self,
        msg_type: &str,
        content: &Value,
        stop: &StopSignal,
    ) -> Result<Value, KernelError> {
        self.ensure_idle(stop).await?;
        let mut id = self.send(Channel::Shell, msg_type, content);
        let mut aborts = 0;
        let mut stop_requested = pin!(stop.requested());
        loop {
            let event = tokio::select! {
                biased;
                reason = &mut stop_requested => return Err(KernelError::StoppedEarly { reason }),
                event = self.channels.next() => event,
                exit = self.lifecycle.exited() => return Err(self.died_error(exit, Begun::No).await),
            };
            if let ChannelEvent::Message(Channel::Shell, message) = &event
                && message.parent_id() == id
            {
                let reply = message.value();
                let failure = match reply["status"].as_str() {
                    Some("error") => reply["evalue"].as_str().unwrap_or("it failed"),
                    // A cell of another client has just failed.
                    Some("aborted" | "abort") if aborts < ABORTS_MAX => {
                        aborts += 1;
                        sleep(ABORT_RETRY_DELAY).await;
                        id = self.send(Channel::Shell, msg_type, content);
                        continue;
                    }
                    Some("aborted" | "abort") => {
                        "it keeps aborting this request because another client's cells fail"
                    }
                    _ if !reply.is_object() => "its reply is invalid",
                    _ => return Ok(reply),
                };
                let message = failure.to_owned();
                return Err(KernelError::QueryFailed { message });
            }
            if let EventResult::Closed(reason) = self.handle(event, None) {
                return Err(self.on_disconnect(reason).await);
            }
        }
    }
}

/// The latest cells of a `history_reply`, whose entries are session, execution count, and code with the text of
/// its value.
fn history(reply: &Value, last: usize) -> Value {
    let cells = reply["history"].as_array().map_or(&[][..], Vec::as_slice);
    let cell = |entry: &Value| {
        let (code, output) = match &entry[2] {
            Value::Array(both) => (both.first(), both.get(1)),
            code => (Some(code), None),
        };
        json!({"count": entry[1], "code": code, "output": output})
    };
    let latest = &cells[cells.len().saturating_sub(last)..];
    latest.iter().map(cell).collect()
}
