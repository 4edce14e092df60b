//! Questions that run no code of the user, in the words of the protocol.

use std::pin::pin;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::link::Heard;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{DROPPED, DROPS, Jupyter, Took, python};
use crate::error::{Begun, KernelError};
use crate::kernel::Question;
use crate::stop::Stop;

impl Jupyter {
    pub(super) async fn question(
        &mut self,
        question: &Question,
        stop: &Stop,
    ) -> Result<Value, KernelError> {
        if let Question::Variables { .. } | Question::Helpers = question {
            return self.inside(question, stop).await;
        }
        let (msg_type, content) = match question {
            Question::Complete { code, cursor } => (
                "complete_request",
                json!({"code": code, "cursor_pos": cursor}),
            ),
            Question::Inspect {
                code,
                cursor,
                source,
            } => (
                "inspect_request",
                json!({"code": code, "cursor_pos": cursor, "detail_level": u8::from(*source)}),
            ),
            Question::IsComplete { code } => ("is_complete_request", json!({"code": code})),
            _ => (
                "history_request",
                json!({
                    "hist_access_type": "range", "session": 0, "start": 1, "stop": null,
                    "raw": true, "output": true,
                }),
            ),
        };
        let reply = self.request(msg_type, &content, stop).await?;
        Ok(match question {
            Question::Complete { cursor, .. } => {
                let matches = reply["matches"].as_array().into_iter().flatten();
                let place = |name: &str| reply[name].as_u64().unwrap_or(*cursor as u64);
                json!({
                    "matches": matches.filter(|one| one.is_string()).collect::<Vec<_>>(),
                    "start": place("cursor_start"),
                    "end": place("cursor_end"),
                })
            }
            Question::Inspect { .. } => json!({
                "found": reply["found"].as_bool().unwrap_or_default(),
                "data": reply["data"].as_object().cloned().unwrap_or_default(),
            }),
            Question::History { last } => history(&reply, *last),
            _ => json!({
                "status": reply["status"].as_str().unwrap_or("unknown"),
                "indent": reply["indent"].as_str().unwrap_or_default(),
            }),
        })
    }

    /// Asks what only our own code inside the kernel can tell.
    async fn inside(&mut self, question: &Question, stop: &Stop) -> Result<Value, KernelError> {
        let asked = self.guest.as_ref().map(|guest| match question {
            Question::Variables { limit } => guest.variables(*limit),
            _ => guest.helpers(),
        });
        let Some(asked) = asked else {
            let language = self
                .description
                .language
                .as_deref()
                .unwrap_or("this language");
            let why = format!("for {language} there is no way to ask that");
            return Err(KernelError::NoAnswer { why });
        };
        let content = asked.content();
        let reply = self.request("execute_request", &content, stop).await?;
        python::answer(&reply).map_err(|why| KernelError::NoAnswer { why })
    }

    /// Sends a request and waits for its reply.
    pub(super) async fn request(
        &mut self,
        msg_type: &str,
        content: &Value,
        stop: &Stop,
    ) -> Result<Value, KernelError> {
        self.make_way(stop).await?;
        let mut id = self.send(Channel::Shell, msg_type, content);
        let mut drops = 0;
        let mut pulled = pin!(stop.pulled());
        loop {
            let heard = tokio::select! {
                biased;
                reason = &mut pulled => return Err(KernelError::StoppedEarly { reason }),
                heard = self.link.next() => heard,
                exit = self.life.exited() => return Err(self.died(exit, Begun::No).await),
            };
            if let Heard::Message(Channel::Shell, message) = &heard
                && message.parent_id() == id
            {
                let reply = message.value();
                let why = match reply["status"].as_str() {
                    Some("error") => reply["evalue"].as_str().unwrap_or("it failed"),
                    // A cell of another client failed just before.
                    Some("aborted" | "abort") if drops < DROPS => {
                        drops += 1;
                        sleep(DROPPED).await;
                        id = self.send(Channel::Shell, msg_type, content);
                        continue;
                    }
                    Some("aborted" | "abort") => {
                        "cells of another client fail all the time, and it drops this for it"
                    }
                    _ if !reply.is_object() => "its answer makes no sense",
                    _ => return Ok(reply),
                };
                let why = why.to_owned();
                return Err(KernelError::NoAnswer { why });
            }
            if let Took::Closed(what) = self.take(heard, None) {
                return Err(self.hung_up(what).await);
            }
        }
    }
}

/// The latest cells of a `history_reply`: session, number, and code with the text of its value.
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
