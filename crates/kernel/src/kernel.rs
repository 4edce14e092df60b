//! [`Kernel`]: a place where code runs. Whoever owns it runs it; everybody else holds a
//! [`Stopper`](crate::Stopper).

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use cellwright_output::{Sink, Stream, Traceback};
use serde_json::Value;

use crate::error::KernelError;
use crate::process::Exit;
use crate::stop::{Stop, StopReason};

/// A boxed future, as traits that are used as objects need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place where code runs.
pub trait Kernel: Send {
    /// What this kernel is.
    fn description(&self) -> &Description;

    /// Runs one cell to its end. The end is the return value: no event of the cell comes after it.
    ///
    /// When `stop` is pulled, the kernel is interrupted; if it does not end the cell within the
    /// grace time, it is killed, and the outcome says so.
    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>>;

    /// Asks something that runs no user code.
    fn ask<'a>(
        &'a mut self,
        question: &'a Question,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Value, KernelError>>;

    /// Keeps the kernel drained while no cell runs; ends only when the kernel does. Cancel-safe.
    fn attend(&mut self) -> BoxFuture<'_, KernelError>;

    /// Text that came after the end of the cell that caused it, since this was last asked.
    fn take_late(&mut self) -> Vec<LateText>;

    /// What whoever started it has to say to its first caller, since this was last asked.
    fn take_remarks(&mut self) -> Vec<Remark> {
        Vec::new()
    }

    /// How many cells it was given so far, which is the number of the latest.
    fn requests(&self) -> u64;

    /// Whether it can run another cell.
    fn is_alive(&mut self) -> bool;

    /// Ends the kernel: asks, and waits until `patience` is pulled for what it still does by itself
    /// (threads, exit handlers); then terminates, then kills. Nothing that it started is left.
    fn shutdown(self: Box<Self>, patience: Stop) -> BoxFuture<'static, Farewell>;
}

/// What a kernel is.
#[derive(Clone, Debug)]
pub struct Description {
    /// Which sort of kernel: `runner`, `jupyter`, `gateway`.
    pub backend: &'static str,
    /// The kernel's name, such as `python3`.
    pub name: String,
    /// Its process, if it is on this machine.
    pub pid: Option<u32>,
    /// The interpreter that runs it.
    pub interpreter: Option<PathBuf>,
    /// The version of the language.
    pub version: Option<String>,
    /// The language that it runs, such as `python`.
    pub language: Option<String>,
    /// What people call it, such as `Python 3 (ipykernel)`.
    pub display_name: Option<String>,
    /// What it says about its language, as notebooks keep it.
    pub language_info: Option<Arc<Value>>,
}

impl Description {
    /// Whether it runs Python, so that what we have for Python can be put into it.
    pub fn is_python(&self) -> bool {
        let language = self.language.as_deref();
        language.is_some_and(|language| language.eq_ignore_ascii_case("python"))
    }
}

/// One cell to run.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The code.
    pub code: String,
    /// Where to run it, if not where the kernel is.
    pub cwd: Option<PathBuf>,
    /// Environment variables to set (`None`: to remove) before it.
    pub env: Vec<(String, Option<String>)>,
    /// Folders to put on the search path for modules before it.
    pub path: Vec<PathBuf>,
    /// Whether the cell counts and is remembered.
    pub history: History,
    /// What `input()` gets.
    pub stdin: Stdin,
    /// The file that the code is from, if it is a script: its `__file__`, its `sys.argv`, and its folder
    /// on the search path.
    pub file: Option<PathBuf>,
    /// The file that the code is from, if it is a module of the user's: what tracebacks call it. It has no
    /// magics, and its names count as those that the kernel came with.
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
}

/// Whether a cell counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// It gets a number and is remembered.
    #[default]
    Keep,
    /// It leaves no trace in `In` and `Out`, and shows no result.
    Silent,
}

/// What `input()` gets.
#[derive(Clone, Debug, Default)]
pub enum Stdin {
    /// An exception, at once.
    #[default]
    Refuse,
    /// These answers in order, then an exception, or what somebody says who is asked.
    Answers(Answers),
}

/// Answers that are given once each; clones share them, so that cells use them up one after the
/// other. When there are none left, somebody can be asked.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    left: Arc<Mutex<VecDeque<String>>>,
    asker: Option<Asker>,
}

impl Answers {
    /// The next one, if any is left.
    pub fn next(&self) -> Option<String> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.pop_front()
    }

    /// The same answers, and then somebody who is asked.
    #[must_use]
    pub fn then_ask(mut self, asker: Asker) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Whether somebody can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.asker.is_some()
    }

    /// Asks, if there is somebody.
    pub(crate) fn ask(&self, prompt: Prompt) -> Option<BoxFuture<'static, Option<String>>> {
        self.asker.as_ref().map(|asker| (asker.0)(prompt))
    }
}

/// What code asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its words.
    pub text: String,
    /// Whether the answer is nobody's business.
    pub secret: bool,
}

/// Somebody who is asked what code wants to know, and may take their time. `None`: they will not say.
#[derive(Clone)]
pub struct Asker(Arc<dyn Fn(Prompt) -> BoxFuture<'static, Option<String>> + Send + Sync>);

impl Asker {
    /// Asks by calling this.
    pub fn new<F>(ask: F) -> Self
    where
        F: Fn(Prompt) -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    {
        Self(Arc::new(ask))
    }
}

/// A question, and the answer that is waited for.
pub(crate) type Asked = (Prompt, BoxFuture<'static, Option<String>>);

/// Waits for what somebody says.
pub(crate) async fn said(asked: &mut Option<Asked>) -> Option<String> {
    match asked {
        Some((_, answer)) => answer.as_mut().await,
        None => std::future::pending().await,
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asker")
    }
}

impl<T: Into<String>> FromIterator<T> for Answers {
    fn from_iter<I: IntoIterator<Item = T>>(answers: I) -> Self {
        let answers = answers.into_iter().map(Into::into).collect();
        Self {
            left: Arc::new(Mutex::new(answers)),
            asker: None,
        }
    }
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The end.
    pub ending: Ending,
    /// The cell's number.
    pub count: Option<u32>,
}

/// The ways in which a cell ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// To its last line.
    Completed,
    /// With an exception.
    Raised(Traceback),
    /// By asking the interpreter to exit, which only ends the cell.
    Exited {
        /// The code it would have exited with.
        code: i32,
    },
    /// Stopped from outside.
    Stopped {
        /// Why.
        reason: StopReason,
        /// Whether the kernel and its variables survived.
        state: State,
    },
}

/// What became of a kernel that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was interrupted and goes on.
    Kept,
    /// It did not react and was killed.
    Lost,
}

/// What can be asked without running user code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// How could this code go on? The cursor counts characters.
    Complete {
        /// The code.
        code: String,
        /// Where the cursor stands, in characters.
        cursor: usize,
    },
    /// What is the thing at the cursor?
    Inspect {
        /// The code.
        code: String,
        /// Where the cursor stands, in characters.
        cursor: usize,
        /// Whether its source is wanted, too.
        source: bool,
    },
    /// Is this code a whole cell?
    IsComplete {
        /// The code.
        code: String,
    },
    /// Which functions does the kernel come with, those of the user's modules included?
    Helpers,
    /// Which variables are there?
    Variables {
        /// At most this many.
        limit: usize,
    },
    /// Which cells ran? Those that count, oldest first: `count`, `code`, and `output`, which is the text of
    /// the value that was shown, or null.
    History {
        /// At most this many, the latest.
        last: usize,
    },
}

/// Text of a cell that had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateText {
    /// The number of the request that caused it, counted from 1 for each kernel.
    pub request: u64,
    /// The stream.
    pub stream: Stream,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Something that a caller should know about a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// A name that programs can go by.
    pub kind: String,
    /// The words.
    pub text: String,
}

/// What a kernel left behind.
#[derive(Clone, Debug)]
pub struct Farewell {
    /// How its process ended, if it had one.
    pub exit: Option<Exit>,
    /// What its cells still said.
    pub late: Vec<LateText>,
    /// Whether it ended when it was asked to.
    pub in_peace: bool,
}
