//! [`Kernel`]: the interface of all backends. One task owns a kernel and runs its cells; other tasks hold
//! a [`StopHandle`](crate::StopHandle).

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use cellwright_output::{Sink, Stream, Traceback};
use cellwright_stdext::{Directory, LockExt};
use serde_json::Value;

use crate::error::KernelError;
use crate::process::Exit;
use crate::stop::{StopReason, StopSignal};

/// A boxed future, for traits that are used as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A kernel that runs cells.
pub trait Kernel: Send {
    /// The kernel's language, process and names.
    fn description(&self) -> &Description;

    /// Runs one cell to its end. The end is the return value: no event of the cell follows it.
    ///
    /// When `stop` is requested, the kernel is interrupted. If the cell does not end within the grace
    /// time, the kernel is killed, and the outcome reports that.
    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>>;

    /// Answers a query that runs no user code.
    fn query<'a>(
        &'a mut self,
        query: &'a KernelQuery,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Value, KernelError>>;

    /// Reads the kernel's output while no cell runs. Returns only when the kernel ends. Cancel-safe.
    fn drain_while_idle(&mut self) -> BoxFuture<'_, KernelError>;

    /// Removes and returns the text that arrived after the end of the cell that printed it.
    fn take_late_text(&mut self) -> Vec<LateText>;

    /// Removes and returns the notices that the launcher left for the first caller.
    fn take_notices(&mut self) -> Vec<KernelNotice> {
        Vec::new()
    }

    /// How many cells the kernel has received, which is also the number of the latest one.
    fn request_count(&self) -> u64;

    /// Whether the kernel can run another cell.
    fn is_alive(&mut self) -> bool;

    /// Shuts the kernel down: requests its exit and waits until `deadline` is requested for its threads
    /// and exit handlers; then terminates it, then kills it. No process that it started remains.
    fn shutdown(self: Box<Self>, deadline: StopSignal) -> BoxFuture<'static, ShutdownReport>;
}

/// Names, language and process of a kernel.
#[derive(Clone, Debug)]
pub struct Description {
    /// The backend: `runner`, `jupyter`, `gateway`.
    pub backend: &'static str,
    /// The kernel's name, such as `python3`.
    pub name: String,
    /// The server that it runs on: the name of its settings, else its URL. `None`: it is not on a server.
    pub server: Option<String>,
    /// Its id on the server.
    pub kernel_id: Option<String>,
    /// Its process id, if it runs on this machine.
    pub pid: Option<u32>,
    /// The interpreter that runs it.
    pub interpreter: Option<PathBuf>,
    /// The version of the language.
    pub version: Option<String>,
    /// The language, such as `python`.
    pub language: Option<String>,
    /// The display name, such as `Python 3 (ipykernel)`.
    pub display_name: Option<String>,
    /// The `language_info` of its `kernel_info_reply`, as notebooks store it.
    pub language_info: Option<Arc<Value>>,
}

impl Description {
    /// Whether the kernel runs Python, so that the Python prelude can be installed in it.
    pub fn is_python(&self) -> bool {
        let language = self.language.as_deref();
        language.is_some_and(|language| language.eq_ignore_ascii_case("python"))
    }
}

/// One cell to run.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The source.
    pub code: String,
    /// The directory to run it in, if not the kernel's current one.
    pub cwd: Option<Directory>,
    /// Environment variables to set before it (`None`: to remove).
    pub env: Vec<(String, Option<String>)>,
    /// Directories to add to the module search path before it.
    pub search_path: Vec<PathBuf>,
    /// Whether the cell is counted and stored in the history.
    pub history: HistoryMode,
    /// What `input()` returns.
    pub stdin: Stdin,
    /// The file of the code, if it is a script. Sets `__file__` and `sys.argv`, and puts its directory on
    /// the search path.
    pub script: Option<PathBuf>,
    /// The file of the code, if it is a user module. Tracebacks show this path. A module has no magics,
    /// and the names it defines count as part of the kernel, not as the user's variables.
    pub module: Option<PathBuf>,
}

impl Request {
    /// A request for plain code.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            ..Self::default()
        }
    }

    /// Whether the code is a file, which `sys.exit(0)` ends successfully. In a cell that is an exception.
    pub(crate) fn is_file(&self) -> bool {
        self.script.is_some() || self.module.is_some()
    }
}

/// Whether a cell is counted and stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryMode {
    /// The cell gets an execution count and is stored in the history.
    #[default]
    Store,
    /// The cell leaves no trace in `In` and `Out`, and shows no result.
    Silent,
}

/// What `input()` returns.
#[derive(Clone, Debug, Default)]
pub enum Stdin {
    /// `input()` raises an exception immediately.
    #[default]
    Refuse,
    /// These answers in order; then the input provider's, or an exception if there is none.
    Answers(InputAnswers),
}

/// Answers for `input()`, each used once. Clones share them, so that consecutive cells use them up in
/// order. An [`InputProvider`] can answer when none are left.
#[derive(Clone, Debug, Default)]
pub struct InputAnswers {
    remaining: Arc<Mutex<VecDeque<String>>>,
    provider: Option<InputProvider>,
}

impl InputAnswers {
    /// The next answer, if any is left.
    pub fn next(&self) -> Option<String> {
        let mut remaining = self.remaining.lock_ignoring_poison();
        remaining.pop_front()
    }

    /// Whether an input request can be answered.
    pub(crate) fn can_answer(&self) -> bool {
        self.provider.is_some() || !self.remaining.lock_ignoring_poison().is_empty()
    }

    /// The same answers, followed by those of `provider`.
    #[must_use]
    pub fn with_provider(mut self, provider: InputProvider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Whether there is an input provider.
    pub(crate) fn has_provider(&self) -> bool {
        self.provider.is_some()
    }

    /// Sends the prompt to the input provider, if there is one.
    pub(crate) fn request_input(
        &self,
        prompt: Prompt,
    ) -> Option<BoxFuture<'static, Option<String>>> {
        self.provider.as_ref().map(|provider| (provider.0)(prompt))
    }
}

/// The prompt of an input request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The prompt text.
    pub text: String,
    /// Whether the answer is a password and must not be shown.
    pub secret: bool,
}

/// Answers input requests while a cell runs, and may take any time. An answer of `None` refuses the
/// request.
#[derive(Clone)]
pub struct InputProvider(Arc<dyn Fn(Prompt) -> BoxFuture<'static, Option<String>> + Send + Sync>);

impl InputProvider {
    /// A provider that calls `answer` for every prompt.
    pub fn new<F>(answer: F) -> Self
    where
        F: Fn(Prompt) -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    {
        Self(Arc::new(answer))
    }
}

/// A prompt that was sent to an input provider, and the future of its answer.
pub(crate) type PendingInput = (Prompt, BoxFuture<'static, Option<String>>);

/// Waits for the answer to a pending input request; without one, waits forever.
pub(crate) async fn input_reply(pending: &mut Option<PendingInput>) -> Option<String> {
    match pending {
        Some((_, answer)) => answer.as_mut().await,
        None => std::future::pending().await,
    }
}

impl std::fmt::Debug for InputProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InputProvider")
    }
}

impl<T: Into<String>> FromIterator<T> for InputAnswers {
    fn from_iter<I: IntoIterator<Item = T>>(answers: I) -> Self {
        let answers = answers.into_iter().map(Into::into).collect();
        Self {
            remaining: Arc::new(Mutex::new(answers)),
            provider: None,
        }
    }
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The ending.
    pub ending: Ending,
    /// The cell's execution count.
    pub execution_count: Option<u32>,
}

/// The ways in which a cell ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// It ran to its last line.
    Completed,
    /// It raised an exception. `sys.exit()` raises `SystemExit`, which ends only the cell.
    Raised(Traceback),
    /// It was stopped from outside.
    Stopped {
        /// Why.
        reason: StopReason,
        /// Whether the kernel and its variables survived.
        state: KernelState,
    },
}

/// The state of a kernel after a cell was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelState {
    /// It was interrupted and keeps its variables.
    Preserved,
    /// It did not react to the interrupt and was killed.
    Lost,
}

/// A query that runs no user code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelQuery {
    /// Completions of this code at the cursor.
    Complete {
        /// The code.
        code: String,
        /// The cursor position, in characters.
        cursor: usize,
    },
    /// Documentation of the object at the cursor.
    Inspect {
        /// The code.
        code: String,
        /// The cursor position, in characters.
        cursor: usize,
        /// Whether to include the object's source.
        include_source: bool,
    },
    /// Whether this code is a complete cell.
    IsComplete {
        /// The code.
        code: String,
    },
    /// The functions that the prelude and the user's modules define.
    Helpers,
    /// The user's variables.
    Variables {
        /// The maximum number of variables.
        limit: usize,
    },
    /// The counted cells that ran, oldest first: `count`, `code`, and `output`, which is the text of the
    /// displayed value, or null.
    History {
        /// The maximum number of cells; the latest ones are returned.
        last: usize,
    },
}

/// Text that a cell printed after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateText {
    /// The number of the request that printed it, counted from 1 for each kernel.
    pub request: u64,
    /// The stream.
    pub stream: Stream,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Information about a kernel for its first caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelNotice {
    /// A stable name for programs.
    pub kind: String,
    /// The message.
    pub text: String,
}

/// The result of shutting a kernel down.
#[derive(Clone, Debug)]
pub struct ShutdownReport {
    /// How its process ended, if it had one.
    pub exit: Option<Exit>,
    /// Text that its cells printed during the shutdown.
    pub late_text: Vec<LateText>,
    /// Whether it exited on request, without being terminated or killed.
    pub graceful: bool,
}
