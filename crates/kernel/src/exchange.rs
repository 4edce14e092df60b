//! [`Exchange`]: one `execute_request` and everything it causes, whatever carries the messages.

mod content;
#[cfg(feature = "fuzz")]
mod fuzz;
mod outline;
mod scan;

use std::mem::take;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use cellwright_output::{Bundle, Data, Event, Scratch, Sink, Traceback};
use serde_json::{Value, json};

use crate::kernel::{Answers, BoxFuture, Ending, History, Outcome, Prompt, Request, State, Stdin};
use crate::stop::StopReason;

use content::said;
pub(crate) use content::{display, stream};
#[cfg(feature = "fuzz")]
pub use fuzz::hear;

/// One request to run code, under way.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The number of the request.
    pub(crate) id: String,
    answers: Option<Answers>,
    /// Whether the kernel was busy with it.
    busy: bool,
    /// Whether the code has certainly begun.
    begun: bool,
    count: Option<u32>,
    /// What the code raised.
    traceback: Option<Traceback>,
    /// What it asked and was not told.
    refused: Option<String>,
    reply: Option<Value>,
    idle: bool,
    place: Place,
    /// Where texts go that are too large for memory.
    scratch: Scratch,
}

/// Where what a request puts out is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cell,
    /// In a pager, or in a widget.
    Aside,
}

/// What a message asks of whoever carries messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Nothing.
    Nothing,
    /// Nothing: the code has done something that it could not while it waits for an answer.
    GoesOn,
    /// An answer to `input()`.
    Answer(String),
    /// That somebody is asked.
    Ask(Prompt),
    /// That the code, which waits for an answer nobody has, is interrupted.
    Interrupt,
}

/// The content of an `execute_request`.
pub(crate) fn execute_request(request: &Request) -> Value {
    let silent = request.history == History::Silent;
    json!({
        "code": request.code,
        "silent": silent,
        "store_history": !silent,
        "user_expressions": {},
        // A question comes to us in any case: only we can say what it was.
        "allow_stdin": true,
        // What others have in the kernel's queue is theirs.
        "stop_on_error": false,
    })
}

/// The content of an `execute_request` for code of ours that nobody is to notice.
pub(crate) fn silent(code: &str) -> Value {
    json!({
        "code": code,
        "silent": true,
        "store_history": false,
        "user_expressions": {},
        "allow_stdin": false,
        "stop_on_error": false,
    })
}

impl Exchange {
    pub(crate) fn new(id: String, request: &Request) -> Self {
        Self {
            id,
            answers: match &request.stdin {
                Stdin::Refuse => None,
                Stdin::Answers(answers) => Some(answers.clone()),
            },
            busy: false,
            begun: false,
            count: None,
            traceback: None,
            refused: None,
            reply: None,
            idle: false,
            place: Place::Cell,
            scratch: Scratch::default(),
        }
    }

    /// Whether the kernel has said how it went.
    pub(crate) fn has_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// Whether the code has raised something.
    pub(crate) fn has_raised(&self) -> bool {
        self.traceback.is_some()
    }

    /// What the kernel replied.
    pub(crate) fn reply(&self) -> Option<&Value> {
        self.reply.as_ref()
    }

    /// Whether what it puts out is shown somewhere else than in the cell.
    pub(crate) fn is_aside(&self) -> bool {
        self.place == Place::Aside
    }

    /// What it puts out from now on is shown somewhere else, or in the cell.
    pub(crate) fn goes_aside(&mut self, aside: bool, sink: &mut dyn Sink) {
        if aside != self.is_aside() {
            self.place = if aside { Place::Aside } else { Place::Cell };
            sink.push(Event::Aside(aside));
        }
    }

    /// Whether the kernel has said that nothing more will come.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Whether the kernel did not run the code, because another client's had failed before.
    pub(crate) fn was_dropped(&self) -> bool {
        match self.status() {
            // ipykernel's word for it.
            Some("aborted") => !self.begun,
            // The word of others for code that was interrupted.
            Some("abort") => !self.begun && !self.busy,
            _ => false,
        }
    }

    fn status(&self) -> Option<&str> {
        self.reply.as_ref()?["status"].as_str()
    }

    /// Takes a message that this request caused, and with it what it displays.
    pub(crate) fn take(
        &mut self,
        channel: Channel,
        message: &mut Message,
        sink: &mut dyn Sink,
    ) -> Want {
        self.begun |= channel == Channel::Iopub && message.header.msg_type != "status";
        let content = &mut message.content;
        match (channel, message.header.msg_type.as_str()) {
            (Channel::Iopub, "stream") => {
                stream(content, |stream, bytes| {
                    sink.push(Event::Text { stream, bytes });
                });
            }
            (Channel::Iopub, "display_data") => {
                let shown = display(take(content), &self.scratch);
                sink.push(Event::Display {
                    bundle: shown.bundle,
                    id: shown.id,
                    result: None,
                });
            }
            (Channel::Iopub, "execute_result") => {
                let shown = display(take(content), &self.scratch);
                sink.push(Event::Display {
                    bundle: shown.bundle,
                    id: shown.id,
                    result: Some(shown.count.or(self.count).unwrap_or_default()),
                });
            }
            (Channel::Iopub, "update_display_data") => {
                let shown = display(take(content), &self.scratch);
                if let Some(id) = shown.id {
                    let bundle = shown.bundle;
                    sink.push(Event::Update { bundle, id });
                }
            }
            (Channel::Iopub, "clear_output") => {
                let wait = said(content)["wait"].as_bool().unwrap_or_default();
                sink.push(Event::Clear { wait });
            }
            (Channel::Iopub, "error") => self.raised(content::traceback(&said(content)), sink),
            (Channel::Iopub, "execute_input") => {
                self.count = content::count(&said(content)["execution_count"]);
                return Want::Nothing;
            }
            (Channel::Iopub, "status") => {
                let state = &said(content)["execution_state"];
                self.busy |= state == "busy";
                self.idle |= state == "idle";
                return Want::Nothing;
            }
            (Channel::Stdin, "input_request") => return self.asked(&said(content), sink),
            // Only the first one counts.
            (Channel::Shell, "execute_reply") if self.reply.is_none() => {
                self.replied(said(content), sink);
            }
            // Widgets talk to a page that is not there, and new sorts of messages may come.
            _ => return Want::Nothing,
        }
        Want::GoesOn
    }

    fn asked(&mut self, content: &Value, sink: &mut dyn Sink) -> Want {
        if let Some(answer) = self.answers.as_ref().and_then(Answers::next) {
            return Want::Answer(answer);
        }
        let prompt = Prompt {
            text: content["prompt"].as_str().unwrap_or_default().to_owned(),
            secret: content["password"].as_bool().unwrap_or_default(),
        };
        if self.answers.as_ref().is_some_and(Answers::can_ask) {
            return Want::Ask(prompt);
        }
        self.refuse(prompt, sink)
    }

    /// Whoever can be asked is.
    pub(crate) fn ask(&self, prompt: &Prompt) -> Option<BoxFuture<'static, Option<String>>> {
        self.answers.as_ref()?.ask(prompt.clone())
    }

    /// Nobody answers a question.
    pub(crate) fn refuse(&mut self, prompt: Prompt, sink: &mut dyn Sink) -> Want {
        let prompt = prompt.text;
        self.refused = Some(prompt.clone());
        sink.push(Event::InputRefused { prompt });
        Want::Interrupt
    }

    fn raised(&mut self, mut traceback: Traceback, sink: &mut dyn Sink) {
        // What it is called depends on the language. Anything else is the code's own.
        let interrupted = traceback.name.is_empty() || traceback.name.contains("nterrupt");
        if let Some(prompt) = self.refused.as_ref().filter(|_| interrupted) {
            // It was we who interrupted it; what it lacked is an answer.
            let name = std::mem::replace(&mut traceback.name, REFUSAL.to_owned());
            traceback.value = format!(
                "input() was called (prompt: '{prompt}') but nobody can answer; \
                 pass answers with --answer or set the value in code"
            );
            let last = format!("{REFUSAL}: {}", traceback.value);
            match traceback.lines.last_mut() {
                Some(line) if line.contains(&name) => *line = last,
                _ => traceback.lines.push(last),
            }
        }
        if traceback.name.is_empty() {
            // Bash has no names for what goes wrong.
            "Error".clone_into(&mut traceback.name);
        }
        self.traceback = Some(traceback.clone());
        sink.push(Event::Raised(traceback));
    }

    fn replied(&mut self, reply: Value, sink: &mut dyn Sink) {
        self.count = content::count(&reply["execution_count"]).or(self.count);
        for payload in content::payloads(&reply) {
            if payload.get("source").and_then(Value::as_str) == Some("page") {
                let data = payload
                    .get("data")
                    .map(Value::to_string)
                    .unwrap_or_default();
                let shown = display(format!("{{\"data\":{data}}}").into(), &self.scratch);
                if let Some(text) = shown.bundle.get("text/plain").and_then(plain) {
                    let bundle = Bundle::text("text/plain", text);
                    // It is for a pager.
                    let before = self.is_aside();
                    self.goes_aside(true, sink);
                    sink.push(Event::Display {
                        bundle,
                        id: None,
                        result: None,
                    });
                    self.goes_aside(before, sink);
                }
            }
        }
        self.reply = Some(reply);
    }

    /// The kernel is done with it and does not say how it went, as when the code brings its own machinery
    /// down. What the kernel's process said may tell more.
    pub(crate) fn has_lost_its_reply(&mut self, stopped: bool, words: &str, sink: &mut dyn Sink) {
        // Of one that we have interrupted nothing more need be said.
        if self.traceback.is_none() && !stopped {
            let last = words.lines().rfind(|line| !line.trim().is_empty());
            let value = match last {
                Some(last) => format!("the kernel did not say how the cell ended: {last}"),
                None => "the kernel did not say how the cell ended".to_owned(),
            };
            let traceback = Traceback {
                name: "NoReply".to_owned(),
                lines: vec![format!("NoReply: {value}")],
                value,
            };
            self.raised(traceback, sink);
        }
        let status = if stopped { "ok" } else { "error" };
        self.reply = Some(json!({"status": status}));
    }

    /// How it ended, now that everything was heard; `words` tells what it said last on standard error.
    pub(crate) fn outcome(
        &mut self,
        stopped: Option<(StopReason, State)>,
        words: impl Fn() -> String,
        sink: &mut dyn Sink,
    ) -> Outcome {
        let broken_off = matches!(self.status(), Some("abort" | "aborted"));
        let failed = broken_off || self.status() == Some("error");
        if let Some(reply) = &self.reply
            && self.traceback.is_none()
            && failed
            && !self.was_dropped()
        {
            // Some kernels tell of an exception only in their reply, which may overtake what others
            // publish: so that is looked at last.
            let mut traceback = content::traceback(reply);
            if broken_off && reply.get("ename").is_none() {
                // Without an exception, as some kernels' code ends that was interrupted.
                let value = "the kernel broke the cell off".to_owned();
                traceback = Traceback {
                    name: "Interrupted".to_owned(),
                    lines: vec![format!("Interrupted: {value}")],
                    value,
                };
            }
            // IPython has told by then of a magic that is not there, in its own way.
            let said = format!("{}: {}", traceback.name, traceback.value);
            if words().trim_end().ends_with(&said) {
                self.traceback = Some(traceback);
            } else {
                self.raised(traceback, sink);
            }
        }
        // Some kernels publish an exception and think that all is well. One that does not say how it
        // went has its exception believed.
        let raised = failed || self.status() != Some("ok");
        let ending = match (stopped, self.traceback.take().filter(|_| raised)) {
            (Some((reason, state)), _) => Ending::Stopped { reason, state },
            (None, Some(traceback)) if traceback.name == "SystemExit" => Ending::Exited {
                code: exit_code(&traceback.value),
            },
            (None, Some(traceback)) => Ending::Raised(traceback),
            (None, None) => Ending::Completed,
        };
        Outcome {
            ending,
            count: self.count,
        }
    }
}

/// What an exception is called that says that nobody answered, as ipykernel calls it.
const REFUSAL: &str = "StdinNotImplementedError";

fn plain(data: &Data) -> Option<&str> {
    match data {
        Data::Text(text) => Some(text),
        _ => None,
    }
}

/// The code of `SystemExit`, as Python would have it: nothing is success, words are failure.
fn exit_code(value: &str) -> i32 {
    match value.trim() {
        "" | "None" | "False" => 0,
        words => words.parse().unwrap_or(1),
    }
}

#[cfg(test)]
mod tests;
