//! A kernel in memory: the backend needs neither sockets nor processes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use cellwright_output::{Capture, Limits};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::profile::KernelProfile;
use super::ready::{StartDeadline, wait_until_ready};
use super::start::ReadyKernel;
use super::{ChannelEvent, Channels, InterruptPath, Jupyter, Lifecycle};
use crate::error::{Begun, KernelError};
use crate::kernel::{Ending, Kernel, KernelState, Request};
use crate::process::Exit;
use crate::stop::{StopReason, StopSignal, TimeLimit};

const KILLED: Exit = Exit {
    code: None,
    signal: Some(9),
};

/// A kernel whose cells are commands: `print TEXT`, `die`, `hang`.
struct MemoryKernel {
    events: mpsc::UnboundedSender<ChannelEvent>,
    exit: watch::Sender<Option<Exit>>,
    /// The request of the cell that hangs.
    hanging: Mutex<Option<Message>>,
}

impl MemoryKernel {
    fn emit(&self, channel: Channel, parent: &Message, msg_type: &str, content: &Value) {
        let message = Message::new(msg_type, "kernel", content).with_parent(parent);
        let event = ChannelEvent::Message(channel, Box::new(message));
        self.events.send(event).ok();
    }

    fn handle(&self, request: &Message) {
        let status = |state| self.emit(Channel::Iopub, request, "status", &state);
        status(json!({"execution_state": "busy"}));
        match request.header.msg_type.as_str() {
            "kernel_info_request" => {
                let info = json!({"status": "ok", "language_info": {"name": "commands"}});
                self.emit(Channel::Shell, request, "kernel_info_reply", &info);
            }
            "execute_request" => {
                let content = request.value();
                let code = content["code"].as_str().unwrap();
                if code == "hang" {
                    *self.hanging.lock().unwrap() = Some(request.clone());
                    return;
                }
                let text = code.strip_prefix("print ").unwrap_or("partial output");
                let stream = json!({"name": "stdout", "text": text});
                self.emit(Channel::Iopub, request, "stream", &stream);
                if code == "die" {
                    self.exit.send_replace(Some(KILLED));
                    return;
                }
                let reply = json!({"status": "ok", "execution_count": 1});
                self.emit(Channel::Shell, request, "execute_reply", &reply);
            }
            "shutdown_request" => {
                let exit = Exit {
                    code: Some(0),
                    signal: None,
                };
                self.exit.send_replace(Some(exit));
            }
            _ => {}
        }
        status(json!({"execution_state": "idle"}));
    }

    fn interrupt(&self) {
        if let Some(request) = self.hanging.lock().unwrap().take() {
            let error = json!({
                "status": "error", "ename": "KeyboardInterrupt", "evalue": "", "traceback": [],
            });
            self.emit(Channel::Iopub, &request, "error", &error);
            self.emit(Channel::Shell, &request, "execute_reply", &error);
            let idle = json!({"execution_state": "idle"});
            self.emit(Channel::Iopub, &request, "status", &idle);
        }
    }
}

struct MemoryChannels {
    kernel: Arc<MemoryKernel>,
    events: mpsc::UnboundedReceiver<ChannelEvent>,
}

impl Channels for MemoryChannels {
    fn session(&self) -> &'static str {
        "client"
    }

    fn send(&self, _channel: Channel, message: &Message) {
        self.kernel.handle(message);
    }

    async fn next(&mut self) -> ChannelEvent {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    fn try_next(&mut self) -> Option<ChannelEvent> {
        self.events.try_recv().ok()
    }

    async fn close(self) {}
}

struct MemoryLifecycle {
    kernel: Arc<MemoryKernel>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Lifecycle for MemoryLifecycle {
    fn is_attached(&self) -> bool {
        false
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn interrupt(&self) -> InterruptPath {
        self.kernel.interrupt();
        InterruptPath::Signal
    }

    fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    async fn exited(&mut self) -> Exit {
        match self.exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::UNKNOWN),
            Err(_) => Exit::UNKNOWN,
        }
    }

    fn record_disconnect(&mut self) {}

    fn terminate(&self) {
        self.kernel.exit.send_replace(Some(KILLED));
    }

    async fn kill(&mut self) -> Exit {
        self.kernel.exit.send_replace(Some(KILLED));
        KILLED
    }

    async fn end(self) -> Option<Exit> {
        *self.exit.borrow()
    }

    fn output_tail(&self) -> String {
        String::new()
    }

    async fn final_output(&mut self) -> String {
        "killed by the test".to_owned()
    }
}

async fn start() -> Jupyter<MemoryChannels, MemoryLifecycle> {
    let (sender, events) = mpsc::unbounded_channel();
    let (exit_sender, exit) = watch::channel(None);
    for channel in [
        Channel::Shell,
        Channel::Iopub,
        Channel::Stdin,
        Channel::Control,
    ] {
        sender.send(ChannelEvent::Opened(channel)).unwrap();
    }
    let kernel = Arc::new(MemoryKernel {
        events: sender,
        exit: exit_sender,
        hanging: Mutex::default(),
    });
    let mut channels = MemoryChannels {
        kernel: Arc::clone(&kernel),
        events,
    };
    let mut lifecycle = MemoryLifecycle { kernel, exit };
    let deadline = StartDeadline {
        stop: &StopSignal::never(),
        at: Instant::now() + Duration::from_secs(10),
        timeout: Duration::from_secs(10),
    };
    let info = wait_until_ready(&mut channels, &mut lifecycle, &deadline).await;
    let ready = ReadyKernel {
        channels,
        lifecycle,
        info: info.unwrap(),
    };
    let profile = KernelProfile {
        backend: super::NAME,
        server: None,
        kernel_id: None,
        files: super::gateway::FileAccess::ThisMachine,
        name: "memory".to_owned(),
        interpreter: None,
        language: None,
        display_name: None,
        interrupt_grace: Duration::from_secs(2),
        staging: Vec::new(),
        prelude: false,
    };
    Jupyter::new(ready, profile)
}

async fn run(
    kernel: &mut dyn Kernel,
    code: &str,
    stop: &StopSignal,
) -> (String, Result<Ending, KernelError>) {
    let mut capture = Capture::new(Limits::default(), None);
    let outcome = kernel
        .execute(&Request::new(code), &mut capture, stop)
        .await;
    (capture.finish().text, outcome.map(|outcome| outcome.ending))
}

#[tokio::test(start_paused = true)]
async fn cells_run_and_the_kernel_shuts_down() {
    let mut kernel = start().await;
    assert_eq!(kernel.description().language.as_deref(), Some("commands"));
    for text in ["one", "two"] {
        let code = format!("print {text}");
        let (output, ending) = run(&mut kernel, &code, &StopSignal::never()).await;
        assert_eq!(output, text);
        assert_eq!(ending.unwrap(), Ending::Completed);
    }
    assert!(kernel.is_alive());
    let report = Box::new(kernel).shutdown(StopSignal::never()).await;
    assert!(report.graceful);
    assert_eq!(report.exit.and_then(|exit| exit.code), Some(0));
}

#[tokio::test(start_paused = true)]
async fn kernel_that_dies_in_a_cell_is_reported_with_its_output() {
    let mut kernel = start().await;
    let (output, ending) = run(&mut kernel, "die", &StopSignal::never()).await;
    assert_eq!(output, "partial output");
    match ending {
        Err(KernelError::Died {
            exit,
            stderr,
            begun,
        }) => {
            assert_eq!((exit, begun), (KILLED, Begun::Maybe));
            assert_eq!(stderr, "killed by the test");
        }
        other => panic!("{other:?}"),
    }
    assert!(!kernel.is_alive());
    let (_, ending) = run(&mut kernel, "print more", &StopSignal::never()).await;
    assert!(matches!(
        ending,
        Err(KernelError::Died {
            begun: Begun::No,
            ..
        })
    ));
}

#[tokio::test(start_paused = true)]
async fn interrupt_goes_through_the_lifecycle() {
    let mut kernel = start().await;
    let stop = StopSignal::never().with_timeout(Duration::from_secs(1));
    let (_, ending) = run(&mut kernel, "hang", &stop).await;
    let stopped = Ending::Stopped {
        reason: StopReason::TimedOut {
            limit: TimeLimit::Cell,
            after: Duration::from_secs(1),
        },
        state: KernelState::Preserved,
    };
    assert_eq!(ending.unwrap(), stopped);
    let (output, _) = run(&mut kernel, "print after", &StopSignal::never()).await;
    assert_eq!(output, "after");
}
