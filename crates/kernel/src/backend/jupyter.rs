//! Jupyter kernels: started as a child process, or already running.
//!
//! The backend speaks Jupyter's messaging protocol. It reaches the world through two traits: [`Channels`] carries the
//! messages, [`Lifecycle`] is the process. ZeroMQ sockets and a local process are one pair of implementations.
//!
//! A server is another pair, in [`gateway`]: a WebSocket and REST. Cells, input, interrupts, queries, widgets, late output
//! and the hooks inside Python kernels are the same for both.

mod between_cells;
mod cell_timers;
mod channels;
mod follow;
pub mod gateway;
mod lifecycle;
mod output_tail;
mod process;
mod profile;
mod python;
mod queries;
mod ready;
mod run;
mod shutdown;
mod spec;
mod start;
mod stragglers;
mod widgets;

use std::collections::VecDeque;
use std::time::Duration;

use cellwright_jupyter::client::KernelClient;
use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::{Message, PROTOCOL_VERSION};
use cellwright_output::{CommMessage, Data, Event, Scratch, Sink, Stream, WidgetModels};
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, interval, sleep_until};

use crate::backend::late_output::{LateOutput, Tail};
use crate::error::{Begun, KernelError};
use crate::execution::{self, Execution, FollowUp};
use crate::kernel::{
    BoxFuture, Description, Kernel, KernelNotice, KernelQuery, LateText, Outcome, Request,
    ShutdownReport,
};
use crate::launch_context::LaunchContext;
use crate::process::Exit;
use crate::stop::StopSignal;
pub use channels::{ChannelEvent, Channels};
pub use lifecycle::{InterruptPath, Lifecycle};
pub use process::{KernelProcess, OwnedProcess};
use profile::KernelProfile;
use python::{PythonSupport, SilentRequest};
pub use spec::{AttachedSpec, IdentifiedBy, JupyterSpec, Transport};
use start::ReadyKernel;
use widgets::OutputWidgets;

/// The name of this backend.
pub const NAME: &str = "jupyter";

/// How many interrupts are sent within the grace of a cell.
const INTERRUPTS_MAX: u32 = 5;

/// How long each step of a shutdown may take: request, SIGTERM.
const SHUTDOWN_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the last messages of a kernel that exited may take to arrive.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_millis(150);

/// How often a kernel may abort a request before the host gives up.
const ABORTS_MAX: u32 = 10;

/// How long to wait before an aborted request is sent again.
const ABORT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How many requests are remembered, to assign late output to its cell.
const RECENT_REQUESTS_MAX: usize = 1024;

/// The answer to an input request for which ipykernel raises `EOFError`.
const END_OF_INPUT: &str = "\u{4}";

/// Why a channel is closed, if the transport gives no reason.
const DISCONNECTED: &str = "it closed its connection";

/// A Jupyter kernel, over any [`Channels`], with any [`Lifecycle`].
pub struct Jupyter<C = KernelClient, L = KernelProcess> {
    channels: C,
    lifecycle: L,
    description: Description,
    /// The content of its `kernel_info_reply`.
    info: Value,
    interrupt_grace: Duration,
    /// The number of cells that were sent.
    requests: u64,
    /// The `msg_id` and the number of the latest cells.
    recent_requests: VecDeque<(String, u64)>,
    /// The Python code that runs inside a Python kernel.
    hooks: Option<PythonSupport>,
    /// The `msg_id`s of silent requests whose replies are not awaited.
    silent_requests: VecDeque<String>,
    late: LateOutput,
    widgets: OutputWidgets,
    models: WidgetModels,
    /// The `input_request` that waits for an answer.
    input_request: Option<Message>,
    /// The `msg_id` of the running cell, also if its caller is gone.
    running_cell: Option<String>,
    /// The end of the standard error of its cells.
    stderr_tail: Tail,
    notices: Vec<KernelNotice>,
    /// How many messages were rejected since the last notice.
    rejected_messages: u64,
    iopub_closed: bool,
    shell_closed: bool,
    /// Why the first channel was closed, if one was.
    close_reason: Option<String>,
    /// Whether it has sent output after `idle`.
    idle_before_output: bool,
}

impl Jupyter {
    /// Starts a kernel, and waits until it is ready.
    pub async fn start(
        spec: &JupyterSpec,
        context: &LaunchContext,
        stop: &StopSignal,
    ) -> Result<Self, KernelError> {
        let ready = start::start(spec, context, stop).await?;
        Ok(Self::new(ready, KernelProfile::of_spec(spec, context)))
    }

    /// Attaches to a running kernel, and waits until it replies.
    pub async fn attach(
        spec: &AttachedSpec,
        context: &LaunchContext,
        stop: &StopSignal,
    ) -> Result<Self, KernelError> {
        let ready = start::attach(spec, stop).await?;
        Ok(Self::new(ready, KernelProfile::of_attached(spec, context)))
    }
}

impl<C: Channels, L: Lifecycle> Jupyter<C, L> {
    /// A kernel that is ready.
    fn new(ready: ReadyKernel<C, L>, profile: KernelProfile) -> Self {
        let ReadyKernel {
            channels,
            lifecycle,
            info,
        } = ready;
        let interrupt_grace = profile.interrupt_grace;
        let hooks = profile.hooks(&info, lifecycle.is_attached());
        let description = profile.describe(lifecycle.pid(), &info);
        let mut kernel = Self {
            channels,
            lifecycle,
            description,
            info,
            interrupt_grace,
            requests: 0,
            recent_requests: VecDeque::new(),
            late: LateOutput::default(),
            widgets: OutputWidgets::default(),
            models: WidgetModels::default(),
            input_request: None,
            running_cell: None,
            stderr_tail: Tail::default(),
            notices: Vec::new(),
            rejected_messages: 0,
            iopub_closed: false,
            shell_closed: false,
            close_reason: None,
            idle_before_output: false,
            hooks,
            silent_requests: VecDeque::new(),
        };
        kernel.check_protocol_version();
        // The reply is not awaited: later requests run after this one.
        if let (false, Some(hooks)) = (kernel.lifecycle.is_attached(), &kernel.hooks) {
            let request = hooks.install();
            kernel.send_silent(request);
        }
        kernel
    }

    /// The content of the kernel's `kernel_info_reply`.
    pub fn info(&self) -> &Value {
        &self.info
    }

    /// Sends a message. Returns its `msg_id`.
    fn send(&self, channel: Channel, msg_type: &str, content: &Value) -> String {
        let message = Message::new(msg_type, self.channels.session(), content);
        self.channels.send(channel, &message);
        message.header.msg_id
    }

    /// Sends internal code without history or output. Its reply is not awaited.
    fn send_silent(&mut self, request: impl Into<SilentRequest>) {
        let content = request.into().content();
        let id = self.send(Channel::Shell, "execute_request", &content);
        if self.silent_requests.len() == RECENT_REQUESTS_MAX {
            self.silent_requests.pop_front();
        }
        self.silent_requests.push_back(id);
    }

    /// Adds a notice if the kernel uses another major version of the protocol.
    fn check_protocol_version(&mut self) {
        let Some(version) = self.info["protocol_version"].as_str() else {
            return;
        };
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        if major(version) != major(PROTOCOL_VERSION) {
            let text = format!(
                "the kernel uses version {version} of Jupyter's protocol, not {PROTOCOL_VERSION}: some of its messages may be misread"
            );
            self.add_notice("protocol_version", &text);
        }
    }

    fn interrupt(&self) {
        match self.lifecycle.interrupt() {
            // Python code that awaits in an event loop has received the signal, but the loop sleeps until the next
            // request arrives.
            InterruptPath::Signal => self.send(Channel::Shell, "kernel_info_request", &json!({})),
            InterruptPath::Message => self.send(Channel::Control, "interrupt_request", &json!({})),
        };
    }

    /// Handles an event, for the running cell if there is one.
    fn handle(
        &mut self,
        event: ChannelEvent,
        cell: Option<(&mut Execution, &mut dyn Sink)>,
    ) -> EventResult {
        match event {
            ChannelEvent::Message(channel, mut message) => {
                let parent = message.parent_id();
                if channel == Channel::Iopub && message.header.msg_type.starts_with("comm_") {
                    self.handle_comm(&message);
                }
                match cell {
                    // Input requests go to one client only, so one without a parent belongs to this cell.
                    Some((cell, sink))
                        if cell.id == parent
                            || (channel == Channel::Stdin && parent.is_empty()) =>
                    {
                        let mut sink = CellSink {
                            sink,
                            tail: &mut self.stderr_tail,
                            models: &mut self.models,
                        };
                        sink.push_progress(false);
                        cell.set_redirected(self.widgets.captures(&parent), &mut sink);
                        if cell.is_redirected() {
                            self.widgets.push_output(&parent, &message);
                        }
                        let mut follow_up = cell.handle(channel, &mut message, &mut sink);
                        if follow_up == FollowUp::Interrupt && self.accepts_end_of_input() {
                            follow_up = FollowUp::InputReply(END_OF_INPUT.to_owned());
                        }
                        match &follow_up {
                            FollowUp::InputReply(answer) => self.send_input_reply(&message, answer),
                            FollowUp::RequestInput(_) => self.input_request = Some(*message),
                            _ => {}
                        }
                        return EventResult::FollowUp(follow_up);
                    }
                    _ => self.handle_unrelated(channel, &parent, &message),
                }
            }
            ChannelEvent::Rejected => self.rejected_messages += 1,
            ChannelEvent::Closed(channel, violation) => {
                self.iopub_closed |= channel == Channel::Iopub;
                self.shell_closed |= channel == Channel::Shell;
                self.lifecycle.record_disconnect();
                let what = violation.unwrap_or_else(|| DISCONNECTED.to_owned());
                self.close_reason.get_or_insert_with(|| what.clone());
                return EventResult::Closed(what);
            }
            ChannelEvent::HeartbeatLost => {
                self.lifecycle.record_disconnect();
                return EventResult::Closed("its heartbeat stopped".to_owned());
            }
            ChannelEvent::Opened(_) => {}
            ChannelEvent::Reconnected { .. } => {
                let text =
                    "the connection to the server broke and is open again: output may be missing";
                self.add_notice("output_incomplete", text);
            }
            ChannelEvent::RateLimited => {
                let text = "the server has dropped output because its rate limit was exceeded: start it with \
                            `--ZMQChannelsWebsocketConnection.limit_rate=False`, or print less";
                self.add_notice("output_incomplete", text);
            }
            ChannelEvent::MessagesLost(count) => {
                let text = format!(
                    "the connection to the server broke: {count} messages of the kernel were lost"
                );
                self.add_notice("output_incomplete", &text);
            }
        }
        EventResult::Ignored
    }

    /// Whether [`END_OF_INPUT`] makes `input()` raise an exception. Other kernels must be interrupted; some of them do not
    /// survive that.
    fn accepts_end_of_input(&self) -> bool {
        self.info["implementation"] == "ipython"
    }

    /// Applies a comm message to the models of widgets, and sends captured output to the kernel.
    fn handle_comm(&mut self, message: &Message) {
        self.widgets.handle_comm(message);
        let in_memory = |frame: &Frame| match frame {
            Frame::InMemory(bytes) => Some(bytes.clone()),
            Frame::OnDisk(_) => None,
        };
        if in_memory(&message.content).is_some() {
            let content = message.value();
            let buffers: Vec<_> = message.buffers.iter().filter_map(in_memory).collect();
            self.models.handle_comm(&CommMessage {
                msg_type: &message.header.msg_type,
                content: &content,
                buffers: buffers.iter().map(|bytes| &bytes[..]).collect(),
            });
            if let (Some(id), true) = (
                content["comm_id"].as_str(),
                buffers.len() < message.buffers.len(),
            ) {
                // Too large to be stored.
                self.models.remove(id);
            }
        }
        for content in self.widgets.take_updates() {
            if let Some(id) = content["comm_id"].as_str() {
                let outputs = content["data"]["state"]["outputs"].clone();
                self.models.set_state(id, "outputs", outputs);
            }
            self.send(Channel::Shell, "comm_msg", &content);
        }
    }

    /// Sends the last state of progress bars and the state of widgets at the end of a cell.
    fn push_widgets(&mut self, sink: &mut dyn Sink) {
        for bar in self.models.take_progress(true) {
            sink.push(Event::Progress(bar));
        }
        if let Some(state) = self.models.take_state() {
            sink.push(Event::WidgetState(state.into()));
        }
    }

    /// Answers the pending input request.
    fn answer_input(&mut self, answer: &str) {
        if let Some(request) = self.input_request.take() {
            self.send_input_reply(&request, answer);
        }
    }

    fn send_input_reply(&self, request: &Message, answer: &str) {
        let content = json!({"value": answer, "status": "ok"});
        let reply = Message::new("input_reply", self.channels.session(), &content);
        self.channels
            .send(Channel::Stdin, &reply.with_parent(request));
    }

    /// Handles a message that does not belong to the running cell: late output of an earlier cell, the reply to a silent
    /// request, or a message of another client.
    fn handle_unrelated(&mut self, channel: Channel, parent: &str, message: &Message) {
        let ends_cell = match channel {
            Channel::Shell => true,
            Channel::Iopub if message.header.msg_type == "status" => {
                message.value()["execution_state"] == "idle"
            }
            _ => false,
        };
        if self.running_cell.as_deref() == Some(parent) && ends_cell {
            // The caller of this cell is gone.
            self.running_cell = None;
        }
        if channel == Channel::Shell
            && let Some(at) = self.silent_requests.iter().position(|id| id == parent)
        {
            self.silent_requests.remove(at);
            if let Some(why) = python::reply_failure(&message.value()) {
                if let Some(hooks) = &mut self.hooks {
                    hooks.invalidate_context();
                }
                let text = format!(
                    "setup code failed in the kernel, so helpers or variables may be missing: {why}"
                );
                self.add_notice("setup_failed", &text);
            }
        }
        if channel != Channel::Iopub {
            return;
        }
        let request = self
            .recent_requests
            .iter()
            .rev()
            .find(|(id, _)| id == parent);
        let Some(&(_, request)) = request else { return };
        match message.header.msg_type.as_str() {
            "stream" => execution::read_stream(&message.content, |stream, bytes| {
                self.late.push(request, stream, bytes);
            }),
            "display_data" | "execute_result" => {
                let scratch = Scratch::default();
                let display = execution::read_display(message.content.clone(), &scratch);
                if let Some(Data::Text(text)) = display.bundle.get("text/plain") {
                    let text = format!("{text}\n");
                    self.late.push(request, Stream::Stdout, text.as_bytes());
                }
            }
            _ => {}
        }
    }

    async fn died_error(&mut self, exit: Exit, begun: Begun) -> KernelError {
        if let Some(error) = self.lifecycle.loss(begun) {
            return error;
        }
        let mut stderr = self.stderr_tail.text();
        stderr.push_str(&self.lifecycle.final_output().await);
        KernelError::Died {
            exit,
            stderr,
            begun,
        }
    }

    /// Kills a kernel that broke the protocol.
    async fn end_with_protocol_error(&mut self, what: String) -> KernelError {
        let loss = self.lifecycle.loss(Begun::Maybe);
        self.lifecycle.kill().await;
        loss.unwrap_or(KernelError::Protocol { violation: what })
    }

    fn add_notice(&mut self, kind: &str, text: &str) {
        self.notices.push(KernelNotice {
            kind: kind.to_owned(),
            text: text.to_owned(),
        });
    }

    fn report_rejected_messages(&mut self) {
        let count = std::mem::take(&mut self.rejected_messages);
        if count > 0 {
            let text = format!(
                "{count} messages were ignored: not signed with the kernel's key, or malformed"
            );
            self.add_notice("messages_refused", &text);
        }
    }

    async fn drain(&mut self) -> KernelError {
        loop {
            let event = tokio::select! {
                biased;
                event = self.channels.next() => event,
                exit = self.lifecycle.exited() => return self.died_error(exit, Begun::No).await,
            };
            if let EventResult::Closed(what) = self.handle(event, None) {
                return self.on_disconnect(what).await;
            }
        }
    }
}

/// Forwards all events, keeps the end of standard error, and adds progress bars of widgets.
struct CellSink<'a> {
    sink: &'a mut dyn Sink,
    tail: &'a mut Tail,
    models: &'a mut WidgetModels,
}

impl CellSink<'_> {
    /// Sends the progress bars that have changed; without `all`, not those that were sent a moment ago.
    fn push_progress(&mut self, all: bool) {
        for bar in self.models.take_progress(all) {
            self.sink.push(Event::Progress(bar));
        }
    }
}

impl Sink for CellSink<'_> {
    fn push(&mut self, event: Event<'_>) {
        match &event {
            Event::Text {
                stream: Stream::Stderr,
                bytes,
            } => self.tail.push(bytes),
            Event::Display { bundle, .. } => {
                if let Some(bar) = self.models.show(bundle) {
                    self.sink.push(Event::Progress(bar));
                }
            }
            _ => {}
        }
        self.sink.push(event);
    }
}

/// The result of handling an event.
enum EventResult {
    /// The event does not concern the running cell.
    Ignored,
    FollowUp(FollowUp),
    /// A channel was closed, for this reason.
    Closed(String),
}

impl<C: Channels, L: Lifecycle> Kernel for Jupyter<C, L> {
    fn description(&self) -> &Description {
        &self.description
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(self.run_cell(request, sink, stop))
    }

    fn query<'a>(
        &'a mut self,
        query: &'a KernelQuery,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(self.send_query(query, stop))
    }

    fn drain_while_idle(&mut self) -> BoxFuture<'_, KernelError> {
        Box::pin(self.drain())
    }

    fn take_late_text(&mut self) -> Vec<LateText> {
        self.late.take()
    }

    fn take_notices(&mut self) -> Vec<KernelNotice> {
        std::mem::take(&mut self.notices)
    }

    fn request_count(&self) -> u64 {
        self.requests
    }

    fn is_alive(&mut self) -> bool {
        self.lifecycle.poll_exit().is_none()
    }

    fn shutdown(self: Box<Self>, deadline: StopSignal) -> BoxFuture<'static, ShutdownReport> {
        Box::pin(self.shut_down(deadline))
    }
}

/// An interval of this period, but at least 1 ms.
fn ticker(period: Duration) -> Interval {
    interval(period.max(Duration::from_millis(1)))
}

/// Waits until this time; forever if there is none.
async fn sleep_until_some(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
