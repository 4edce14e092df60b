//! Any Jupyter kernel over ZeroMQ: as a child of ours, or one that runs already.

mod ask;
mod farewell;
mod life;
mod python;
mod run;
mod spec;
mod start;
mod stragglers;
mod way;
mod widgets;
mod words;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::kernelspec::Interrupt;
use cellwright_jupyter::link::{Beat, Heard, Link};
use cellwright_jupyter::message::{Message, PROTOCOL};
use cellwright_output::{Data, Event, Scratch, Sink, Stream};
use serde_json::{Value, json};
use tokio::time::{Interval, interval};

use crate::backend::late::{Late, Tail};
use crate::error::{Begun, KernelError};
use crate::exchange::{self, Exchange, Want};
use crate::kernel::{
    BoxFuture, Description, Farewell, Kernel, LateText, Outcome, Question, Remark, Request,
};
use crate::process::Exit;
use crate::stop::Stop;
use life::Life;
use python::{Asked, Guest};
pub use spec::{JupyterSpec, Source, Transport};
use widgets::Widgets;

/// How often a cell is interrupted within the time that it has to end.
const INTERRUPTS: u32 = 5;

/// How long each step of the way out may take: asking, terminating.
const FAREWELL_STEP: Duration = Duration::from_secs(1);

/// How long what a kernel said before it died may take to arrive.
const LAST_MESSAGES: Duration = Duration::from_millis(150);

/// How often a kernel may drop a request, and how long it is then left alone.
const DROPS: u32 = 10;
const DROPPED: Duration = Duration::from_millis(50);

/// How many requests are remembered, to know whose late text is.
const REMEMBERED: usize = 1024;

/// A Jupyter kernel.
pub struct Jupyter {
    life: Life,
    link: Link,
    description: Description,
    /// What it says about itself.
    info: Value,
    interrupt: Interrupt,
    interrupt_grace: Duration,
    requests: u64,
    /// The numbers of the latest requests, and ours for them.
    sent: VecDeque<(String, u64)>,
    /// What Python kernels find inside.
    guest: Option<Guest>,
    /// The numbers of our own silent requests whose replies nobody waits for.
    silent: VecDeque<String>,
    late: Late,
    widgets: Widgets,
    /// The question that somebody is being asked.
    question: Option<Message>,
    /// The number of the cell that runs: while nobody follows it, of one that was let go.
    running: Option<String>,
    /// What its cells said last on standard error.
    moans: Tail,
    remarks: Vec<Remark>,
    /// How many messages were not accepted.
    refused: u64,
    /// Whether nothing more will come on iopub.
    iopub_closed: bool,
    /// Whether no more replies will come.
    shell_closed: bool,
    /// Why a channel is closed, if one is.
    closed: Option<String>,
    /// Whether it was seen to say that this was all before it was.
    hasty: bool,
}

impl Jupyter {
    /// Starts a kernel, or finds one that runs, and waits until it is ready.
    pub async fn start(spec: &JupyterSpec, stop: &Stop) -> Result<Self, KernelError> {
        let (ready, name, interrupt) = match &spec.source {
            Source::Start { kernelspec, python } => {
                let ready = start::start(spec, kernelspec, python.as_deref(), stop).await?;
                (ready, kernelspec.name.clone(), kernelspec.interrupt)
            }
            Source::Existing { connection_file } => {
                let ready = start::attach(spec, connection_file, stop).await?;
                let name = connection_file.file_stem().unwrap_or_default();
                let name = name.to_string_lossy().into_owned();
                (ready, name, Interrupt::Message)
            }
        };
        let start::Ready { life, link, info } = ready;
        let about = |key: &str| Some(info["language_info"][key].as_str()?.to_owned());
        let description = Description {
            backend: "jupyter",
            name,
            pid: match &life {
                Life::Ours(child) => Some(child.process.pid()),
                Life::Theirs { .. } => None,
            },
            interpreter: match &spec.source {
                Source::Start { kernelspec, python } => {
                    let command = kernelspec.command(std::path::Path::new(""), python.as_deref());
                    command.into_iter().next().map(PathBuf::from)
                }
                Source::Existing { .. } => None,
            },
            version: about("version"),
            language: about("name").or_else(|| match &spec.source {
                Source::Start { kernelspec, .. } => {
                    Some(kernelspec.language.clone()).filter(|language| !language.is_empty())
                }
                Source::Existing { .. } => None,
            }),
            display_name: match &spec.source {
                Source::Start { kernelspec, .. } => Some(kernelspec.display_name.clone()),
                Source::Existing { .. } => None,
            },
            language_info: info
                .get("language_info")
                .filter(|about| about.is_object())
                .map(|about| Arc::new(about.clone())),
        };
        let guest = description
            .is_python()
            .then(|| start::guest(spec, &life))
            .flatten();
        let mut kernel = Self {
            life,
            link,
            description,
            info,
            interrupt,
            interrupt_grace: spec.interrupt_grace,
            requests: 0,
            sent: VecDeque::new(),
            late: Late::default(),
            widgets: Widgets::default(),
            question: None,
            running: None,
            moans: Tail::default(),
            remarks: Vec::new(),
            refused: 0,
            iopub_closed: false,
            shell_closed: false,
            closed: None,
            hasty: false,
            guest,
            silent: VecDeque::new(),
        };
        kernel.check_version();
        // Nobody has to wait for it: what is sent next comes after it.
        if let (Life::Ours(_), Some(guest)) = (&kernel.life, &kernel.guest) {
            let entering = guest.enter();
            kernel.silently(entering);
        }
        Ok(kernel)
    }

    /// What the kernel says about itself, as its `kernel_info_reply` has it.
    pub fn info(&self) -> &Value {
        &self.info
    }

    fn send(&self, channel: Channel, msg_type: &str, content: &Value) -> String {
        let message = Message::new(msg_type, self.link.session(), content);
        self.link.send(channel, &message);
        message.header.msg_id
    }

    /// Runs code of ours that nobody is to notice; its reply is not waited for.
    fn silently(&mut self, asked: impl Into<Asked>) {
        let content = asked.into().content();
        let id = self.send(Channel::Shell, "execute_request", &content);
        if self.silent.len() == REMEMBERED {
            self.silent.pop_front();
        }
        self.silent.push_back(id);
    }

    /// Says so if the kernel speaks another version of the protocol than we do.
    fn check_version(&mut self) {
        let Some(version) = self.info["protocol_version"].as_str() else {
            return;
        };
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        if major(version) != major(PROTOCOL) {
            let text = format!(
                "the kernel speaks version {version} of Jupyter's protocol, not {PROTOCOL}: some of what it says may not be understood"
            );
            self.remark("protocol_version", &text);
        }
    }

    fn interrupt(&self) {
        match (&self.life, self.interrupt) {
            (Life::Ours(child), Interrupt::Signal) => {
                child.process.interrupt();
                // Python code that waits in an event loop has been told by now, but its loop sleeps on until
                // something comes.
                self.send(Channel::Shell, "kernel_info_request", &json!({}));
            }
            _ => {
                self.send(Channel::Control, "interrupt_request", &json!({}));
            }
        }
    }

    /// Takes what was heard, for the cell that runs or for none.
    fn take(&mut self, heard: Heard, cell: Option<(&mut Exchange, &mut dyn Sink)>) -> Took {
        match heard {
            Heard::Message(channel, mut message) => {
                let parent = message.parent_id();
                if channel == Channel::Iopub && message.header.msg_type.starts_with("comm_") {
                    self.widgets.hear(&message);
                    for content in self.widgets.news() {
                        self.send(Channel::Shell, "comm_msg", &content);
                    }
                }
                match cell {
                    // A question comes to us alone, so it is the cell's also if it does not say so.
                    Some((cell, sink))
                        if cell.id == parent
                            || (channel == Channel::Stdin && parent.is_empty()) =>
                    {
                        let mut sink = Overheard {
                            sink,
                            moans: &mut self.moans,
                        };
                        cell.goes_aside(self.widgets.capture(&parent), &mut sink);
                        if cell.is_aside() {
                            self.widgets.show(&parent, &message);
                        }
                        let want = cell.take(channel, &mut message, &mut sink);
                        match &want {
                            Want::Answer(answer) => self.answer(&message, answer),
                            Want::Ask(_) => self.question = Some(*message),
                            _ => {}
                        }
                        return Took::Want(want);
                    }
                    _ => self.stray(channel, &parent, &message),
                }
            }
            Heard::Refused(..) => self.refused += 1,
            Heard::Closed(channel, error) => {
                self.iopub_closed |= channel == Channel::Iopub;
                self.shell_closed |= channel == Channel::Shell;
                if let Life::Theirs { gone } = &mut self.life {
                    *gone = true;
                }
                let what = match error {
                    Some(error) => start::words(&error),
                    None => "it closed its connection".to_owned(),
                };
                self.closed.get_or_insert_with(|| what.clone());
                return Took::Closed(what);
            }
            Heard::Heartbeat(Beat::Missed) => {
                if let Life::Theirs { gone } = &mut self.life {
                    *gone = true;
                }
                return Took::Closed("its heart does not beat any more".to_owned());
            }
            Heard::Heartbeat(Beat::Felt) | Heard::Open(_) => {}
        }
        Took::Fine
    }

    /// Tells the code what somebody said to its question.
    fn answer_question(&mut self, answer: &str) {
        if let Some(question) = self.question.take() {
            self.answer(&question, answer);
        }
    }

    fn answer(&self, question: &Message, answer: &str) {
        let content = json!({"value": answer, "status": "ok"});
        let reply = Message::new("input_reply", self.link.session(), &content);
        self.link.send(Channel::Stdin, &reply.caused_by(question));
    }

    /// A message that nobody waits for: a thread of an earlier cell says something, or somebody else uses
    /// the kernel, too.
    fn stray(&mut self, channel: Channel, parent: &str, message: &Message) {
        let over = match channel {
            Channel::Shell => true,
            Channel::Iopub if message.header.msg_type == "status" => {
                message.value()["execution_state"] == "idle"
            }
            _ => false,
        };
        if self.running.as_deref() == Some(parent) && over {
            // Nobody follows it any more.
            self.running = None;
        }
        if channel == Channel::Shell
            && let Some(at) = self.silent.iter().position(|id| id == parent)
        {
            self.silent.remove(at);
            if let Some(why) = python::failure(&message.value()) {
                if let Some(guest) = &mut self.guest {
                    guest.unsettled();
                }
                let text = format!("what cells usually find inside is not there: {why}");
                self.remark("inside_failed", &text);
            }
        }
        if channel != Channel::Iopub {
            return;
        }
        let request = self.sent.iter().rev().find(|(id, _)| id == parent);
        let Some(&(_, request)) = request else { return };
        match message.header.msg_type.as_str() {
            "stream" => exchange::stream(&message.content, |stream, bytes| {
                self.late.keep(request, stream, bytes);
            }),
            "display_data" | "execute_result" => {
                let scratch = Scratch::default();
                let shown = exchange::display(message.content.clone(), &scratch);
                if let Some(Data::Text(text)) = shown.bundle.get("text/plain") {
                    let text = format!("{text}\n");
                    self.late.keep(request, Stream::Stdout, text.as_bytes());
                }
            }
            _ => {}
        }
    }

    async fn died(&mut self, exit: Exit, begun: Begun) -> KernelError {
        let mut stderr = self.moans.text();
        stderr.push_str(&self.life.last_words().await);
        KernelError::Died {
            exit,
            stderr,
            begun,
        }
    }

    /// Ends a kernel that makes no sense any more.
    async fn broken(&mut self, what: String) -> KernelError {
        self.life.end().await;
        KernelError::Protocol { what }
    }

    fn remark(&mut self, kind: &str, text: &str) {
        self.remarks.push(Remark {
            kind: kind.to_owned(),
            text: text.to_owned(),
        });
    }

    fn tell_refused(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        if refused > 0 {
            let text = format!(
                "{refused} messages were ignored: not signed with the kernel's key, or not messages at all"
            );
            self.remark("messages_refused", &text);
        }
    }

    async fn drain(&mut self) -> KernelError {
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.link.next() => heard,
                exit = self.life.exited() => return self.died(exit, Begun::No).await,
            };
            if let Took::Closed(what) = self.take(heard, None) {
                return self.hung_up(what).await;
            }
        }
    }
}

/// Passes everything on, and remembers the last words on standard error.
struct Overheard<'a> {
    sink: &'a mut dyn Sink,
    moans: &'a mut Tail,
}

impl Sink for Overheard<'_> {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text {
            stream: Stream::Stderr,
            bytes,
        } = &event
        {
            self.moans.hear(bytes);
        }
        self.sink.push(event);
    }
}

/// What came of something that was heard.
enum Took {
    Fine,
    Want(Want),
    /// A channel is closed, for this reason.
    Closed(String),
}

impl Kernel for Jupyter {
    fn description(&self) -> &Description {
        &self.description
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(self.run(request, sink, stop))
    }

    fn ask<'a>(
        &'a mut self,
        question: &'a Question,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(self.question(question, stop))
    }

    fn attend(&mut self) -> BoxFuture<'_, KernelError> {
        Box::pin(self.drain())
    }

    fn take_late(&mut self) -> Vec<LateText> {
        self.late.take()
    }

    fn take_remarks(&mut self) -> Vec<Remark> {
        std::mem::take(&mut self.remarks)
    }

    fn requests(&self) -> u64 {
        self.requests
    }

    fn is_alive(&mut self) -> bool {
        self.life.look().is_none()
    }

    fn shutdown(self: Box<Self>, patience: Stop) -> BoxFuture<'static, Farewell> {
        Box::pin(self.end(patience))
    }
}

/// A clock that ticks that often, and at least now and then.
fn often(period: Duration) -> Interval {
    interval(period.max(Duration::from_millis(1)))
}
