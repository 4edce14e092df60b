//! [`Execution`]: one `execute_request` and the messages that it causes, independent of the transport.

mod content;
#[cfg(feature = "fuzz")]
mod fuzz;
mod partial_content;
mod scan;

use std::mem::take;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use cellwright_output::{Bundle, Data, Event, Scratch, Sink, Traceback};
use serde_json::{Value, json};

use crate::kernel::{
    BoxFuture, Ending, HistoryMode, InputAnswers, KernelState, Outcome, Prompt, Request, Stdin,
};
use crate::stop::StopReason;

use content::parse_json;
pub(crate) use content::{read_display, read_stream};
#[cfg(feature = "fuzz")]
pub use fuzz::replay_messages;

/// The state of one `execute_request`.
#[derive(Debug)]
pub(crate) struct Execution {
    /// The `msg_id` of the request.
    pub(crate) id: String,
    answers: Option<InputAnswers>,
    source: CodeSource,
    /// Whether the kernel has published `busy` for it.
    busy: bool,
    /// Whether the code has certainly begun.
    begun: bool,
    /// The execution count.
    count: Option<u32>,
    /// The error that the code raised last.
    traceback: Option<Traceback>,

    /// The prompt of an input request that was refused.
    refused_prompt: Option<String>,
    /// The content of the `execute_reply`.
    reply: Option<Value>,
    /// Whether the kernel has published `idle` for it.
    idle: bool,
    output_target: OutputTarget,
    /// Holds strings that are too large for memory.
    scratch: Scratch,
}

/// Where the code of a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeSource {
    Cell,
    File,
}

/// Where the output of a request is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputTarget {
    Cell,
    PagerOrWidget,
}

/// What the caller of [`Execution::handle`] has to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FollowUp {
    /// Nothing.
    Nothing,
    /// Nothing. The message shows that the code does not wait for input any more.
    Resumed,
    /// Send this answer to `input()`.
    InputReply(String),
    /// Request the input from the caller.
    RequestInput(Prompt),
    /// Interrupt the code: it waits for input that is not available.
    Interrupt,
}

/// The content of an `execute_request`.
pub(crate) fn execute_content(request: &Request) -> Value {
    let silent = request.history == HistoryMode::Silent;
    let can_answer = match &request.stdin {
        Stdin::Refuse => false,
        Stdin::Answers(answers) => answers.can_answer(),
    };
    json!({
        "code": request.code,
        "silent": silent,
        "store_history": !silent,
        "user_expressions": {},
        // Without an answer the kernel itself refuses input, with an exception that the code can handle.
        "allow_stdin": can_answer,
        // Requests of other clients in the kernel's queue must still run.
        "stop_on_error": false,
    })
}

/// The content of an `execute_request` for internal code, without history or output.
pub(crate) fn silent_content(code: &str) -> Value {
    json!({
        "code": code,
        "silent": true,
        "store_history": false,
        "user_expressions": {},
        "allow_stdin": false,
        "stop_on_error": false,
    })
}

impl Execution {
    pub(crate) fn new(id: String, request: &Request) -> Self {
        Self {
            id,
            answers: match &request.stdin {
                Stdin::Refuse => None,
                Stdin::Answers(answers) => Some(answers.clone()),
            },
            source: if request.is_file() {
                CodeSource::File
            } else {
                CodeSource::Cell
            },
            busy: false,
            begun: false,
            count: None,
            traceback: None,
            refused_prompt: None,
            reply: None,
            idle: false,
            output_target: OutputTarget::Cell,
            scratch: Scratch::default(),
        }
    }

    /// Whether the `execute_reply` has arrived.
    pub(crate) fn has_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// Whether the code has raised an error.
    pub(crate) fn has_raised(&self) -> bool {
        self.traceback.is_some()
    }

    /// The content of the `execute_reply`.
    pub(crate) fn reply(&self) -> Option<&Value> {
        self.reply.as_ref()
    }

    /// Whether output currently goes to a pager or widget.
    pub(crate) fn is_redirected(&self) -> bool {
        self.output_target == OutputTarget::PagerOrWidget
    }

    /// Sends output from now on to a pager or widget, or back to the cell.
    pub(crate) fn set_redirected(&mut self, redirected: bool, sink: &mut dyn Sink) {
        if redirected != self.is_redirected() {
            self.output_target = if redirected {
                OutputTarget::PagerOrWidget
            } else {
                OutputTarget::Cell
            };
            sink.push(Event::ShowOnly(redirected));
        }
    }

    /// Whether the kernel has published `idle` for this request.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Whether the kernel skipped the code because a cell of another client failed before it.
    pub(crate) fn was_aborted(&self) -> bool {
        match self.status() {
            // The status that ipykernel sends.
            Some("aborted") => !self.begun,
            // Other kernels send this for code that was interrupted.
            Some("abort") => !self.begun && !self.busy,
            _ => false,
        }
    }

    fn status(&self) -> Option<&str> {
        self.reply.as_ref()?["status"].as_str()
    }

    /// Handles a message whose parent is this request. Takes the content of displays out of it.
    pub(crate) fn handle(
        &mut self,
        channel: Channel,
        message: &mut Message,
        sink: &mut dyn Sink,
    ) -> FollowUp {
        self.begun |= channel == Channel::Iopub && message.header.msg_type != "status";
        let content = &mut message.content;
        match (channel, message.header.msg_type.as_str()) {
            (Channel::Iopub, "stream") => {
                read_stream(content, |stream, bytes| {
                    sink.push(Event::Text { stream, bytes });
                });
            }
            (Channel::Iopub, "display_data") => {
                let display = read_display(take(content), &self.scratch);
                sink.push(Event::Display {
                    bundle: display.bundle,
                    id: display.id,
                    result: None,
                });
            }
            (Channel::Iopub, "execute_result") => {
                let display = read_display(take(content), &self.scratch);
                sink.push(Event::Display {
                    bundle: display.bundle,
                    id: display.id,
                    result: Some(display.count.or(self.count).unwrap_or_default()),
                });
            }
            (Channel::Iopub, "update_display_data") => {
                let display = read_display(take(content), &self.scratch);
                if let Some(id) = display.id {
                    let bundle = display.bundle;
                    sink.push(Event::Update { bundle, id });
                }
            }
            (Channel::Iopub, "clear_output") => {
                let wait = parse_json(content)["wait"].as_bool().unwrap_or_default();
                sink.push(Event::Clear { wait });
            }
            (Channel::Iopub, "error") => {
                self.report_error(content::parse_traceback(&parse_json(content)), sink);
            }
            (Channel::Iopub, "execute_input") => {
                self.count = content::parse_count(&parse_json(content)["execution_count"]);
                return FollowUp::Nothing;
            }
            (Channel::Iopub, "status") => {
                let state = &parse_json(content)["execution_state"];
                self.busy |= state == "busy";
                self.idle |= state == "idle";
                return FollowUp::Nothing;
            }
            (Channel::Stdin, "input_request") => {
                return self.handle_input_request(&parse_json(content), sink);
            }
            // Later replies are ignored.
            (Channel::Shell, "execute_reply") if self.reply.is_none() => {
                self.handle_reply(parse_json(content), sink);
            }
            // Messages of widgets for a front end, and message types of later protocol versions.
            _ => return FollowUp::Nothing,
        }
        FollowUp::Resumed
    }

    fn handle_input_request(&mut self, content: &Value, sink: &mut dyn Sink) -> FollowUp {
        if let Some(answer) = self.answers.as_ref().and_then(InputAnswers::next) {
            return FollowUp::InputReply(answer);
        }
        let prompt = Prompt {
            text: content["prompt"].as_str().unwrap_or_default().to_owned(),
            secret: content["password"].as_bool().unwrap_or_default(),
        };
        if self
            .answers
            .as_ref()
            .is_some_and(InputAnswers::has_provider)
        {
            return FollowUp::RequestInput(prompt);
        }
        self.refuse_input(prompt, sink)
    }

    /// Requests input from the caller, if the caller accepts input requests.
    pub(crate) fn request_input(
        &self,
        prompt: &Prompt,
    ) -> Option<BoxFuture<'static, Option<String>>> {
        self.answers.as_ref()?.request_input(prompt.clone())
    }

    /// Refuses an input request.
    pub(crate) fn refuse_input(&mut self, prompt: Prompt, sink: &mut dyn Sink) -> FollowUp {
        let prompt = prompt.text;
        self.refused_prompt = Some(prompt.clone());
        sink.push(Event::InputRefused { prompt });
        FollowUp::Interrupt
    }

    fn report_error(&mut self, mut traceback: Traceback, sink: &mut dyn Sink) {
        // The name of this error depends on the language. Any other error was raised by the code itself.
        let interrupted = traceback.name.is_empty() || traceback.name.contains("nterrupt");
        let end_of_input = traceback.name == "EOFError" && traceback.value.is_empty();
        if let Some(prompt) = self
            .refused_prompt
            .as_ref()
            .filter(|_| interrupted || end_of_input)
        {
            // The host had no answer, and interrupted the code or sent the end of the input: report that reason.
            let name = traceback.name.clone();
            if interrupted {
                INPUT_REFUSED.clone_into(&mut traceback.name);
            }
            traceback.value = format!(
                "input() was called (prompt: '{prompt}') but no answer is available; \
                 set the value in code, or pass the answer with the call (`answer`)"
            );
            let last = format!("{}: {}", traceback.name, traceback.value);
            match traceback.lines.last_mut() {
                Some(line) if line.contains(&name) => *line = last,
                _ => traceback.lines.push(last),
            }
        }
        if traceback.name == INPUT_REFUSED && self.refused_prompt.is_none() {
            // The kernel refused it without a request that contains the prompt.
            let prompt = String::new();
            sink.push(Event::InputRefused { prompt });
        }
        if traceback.name.is_empty() {
            // bash_kernel sends errors without a name.
            "Error".clone_into(&mut traceback.name);
        }
        self.traceback = Some(traceback.clone());
        if !self.ends_file(&traceback) {
            sink.push(Event::Raised(traceback));
        }
    }

    /// Whether the error is the successful exit of a file.
    fn ends_file(&self, error: &Traceback) -> bool {
        let succeeds = matches!(error.value.as_str(), "" | "None" | "False" | "0");
        self.source == CodeSource::File && succeeds && error.name == "SystemExit"
    }

    fn handle_reply(&mut self, reply: Value, sink: &mut dyn Sink) {
        self.count = content::parse_count(&reply["execution_count"]).or(self.count);
        for payload in content::payloads(&reply) {
            if payload.get("source").and_then(Value::as_str) == Some("page") {
                let data = payload
                    .get("data")
                    .map(Value::to_string)
                    .unwrap_or_default();
                let display = read_display(format!("{{\"data\":{data}}}").into(), &self.scratch);
                if let Some(text) = display.bundle.get("text/plain").and_then(text_data) {
                    let bundle = Bundle::text("text/plain", text);
                    let before = self.is_redirected();
                    self.set_redirected(true, sink);
                    sink.push(Event::Display {
                        bundle,
                        id: None,
                        result: None,
                    });
                    self.set_redirected(before, sink);
                }
            }
        }
        self.reply = Some(reply);
    }

    /// Ends an execution for which the kernel sent no reply, for example because the code broke the kernel's
    /// own machinery. The error includes the last line of `process_output`.
    pub(crate) fn finish_without_reply(
        &mut self,
        stopped: bool,
        process_output: &str,
        sink: &mut dyn Sink,
    ) {
        // A cell that was interrupted needs no further error.
        if self.traceback.is_none() && !stopped {
            let mut lines = process_output.lines();
            let last = lines.rfind(|line| !line.trim().is_empty());
            let value = match last {
                Some(last) => format!("the kernel sent no `execute_reply`: {last}"),
                None => "the kernel sent no `execute_reply`".to_owned(),
            };
            let traceback = Traceback {
                name: "NoReply".to_owned(),
                lines: vec![format!("NoReply: {value}")],
                value,
            };
            self.report_error(traceback, sink);
        }
        let status = if stopped { "ok" } else { "error" };
        self.reply = Some(json!({"status": status}));
    }

    /// Returns how the execution ended, after its last message. `stderr_tail` returns the end of its standard
    /// error.
    pub(crate) fn outcome(
        &mut self,
        stopped: Option<(StopReason, KernelState)>,
        stderr_tail: impl Fn() -> String,
        sink: &mut dyn Sink,
    ) -> Outcome {
        let aborted = matches!(self.status(), Some("abort" | "aborted"));
        let failed = aborted || self.status() == Some("error");
        if let Some(reply) = &self.reply
            && self.traceback.is_none()
            && failed
            && !self.was_aborted()
        {
            // Some kernels send an error only in their reply. The reply of other kernels may overtake the
            // error that they publish, so it is evaluated last.
            let mut traceback = content::parse_traceback(reply);
            if aborted && reply.get("ename").is_none() {
                // Some kernels send no error for code that was interrupted.
                let value = "the kernel aborted the cell".to_owned();
                traceback = Traceback {
                    name: "Interrupted".to_owned(),
                    lines: vec![format!("Interrupted: {value}")],
                    value,
                };
            }
            // IPython has already printed the error for an unknown magic to standard error.
            let message = format!("{}: {}", traceback.name, traceback.value);
            if stderr_tail().trim_end().ends_with(&message) {
                self.traceback = Some(traceback);
            } else {
                self.report_error(traceback, sink);
            }
        }
        // Some kernels publish an error and reply `ok`: the reply decides. Without a valid status, the published
        // error decides.
        let raised = failed || self.status() != Some("ok");
        let ending = match (stopped, self.traceback.take().filter(|_| raised)) {
            (Some((reason, state)), _) => Ending::Stopped { reason, state },
            (None, Some(traceback)) if !self.ends_file(&traceback) => Ending::Raised(traceback),
            (None, _) => Ending::Completed,
        };
        Outcome {
            ending,
            execution_count: self.count,
        }
    }
}

/// The name of the error for refused input, as in ipykernel.
const INPUT_REFUSED: &str = "StdinNotImplementedError";

fn text_data(data: &Data) -> Option<&str> {
    match data {
        Data::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
