//! Runs code on kernels.
//!
//! # Modules, in reading order
//!
//! | module | purpose |
//! | --- | --- |
//! | `kernel` | [`Kernel`], the interface of all backends: a [`Request`] (one cell) in, events and an [`Outcome`] out |
//! | `stop` | [`StopSignal`] ends an execution early; the caller keeps its [`StopHandle`] or sets a timeout |
//! | `error` | [`KernelError`], a failure of the kernel and not of its code; [`KernelError::retry`] is the retry policy |
//! | `spec` | [`KernelSpec`] describes a kernel and can be sent to another process; [`KernelId`] identifies the kernel |
//! | `launch` | [`LaunchContext`]: where a kernel starts, and the resources of the process that starts it |
//! | [`backend::runner`] | the built-in Python kernel, which needs only an interpreter |
//! | [`backend::jupyter`] | Jupyter kernels, started from a kernelspec or attached through a connection file |
//! | `backend::scripted` | a kernel that follows a script, for tests (feature `scripted`) |
//! | `execution` | one `execute_request` and the messages that it causes, independent of the transport |
//! | [`process`] | runs a kernel under a supervisor process: when the owner ends, the kernel and its descendants end |
//! | [`python`], [`variables`] | select the interpreter of a kernel; set environment variables |
//! | [`modules`] | the user's files that run before the first cell |
//! | [`session`] | keeps kernels across calls: a pool of sessions that queue, run and report [`session::Job`]s |
//!
//! # Flow
//!
//! ```text
//! caller → Sessions::submit(SessionCall, Job)
//!          → Mailbox → Worker (one task per session)
//!            → KernelSlot → KernelLauncher::start → KernelSpec::start → Runner | Jupyter → Supervised (process)
//!                         → Kernel::execute(Request, Sink, StopSignal) → Outcome
//!          → JobObserver: on_kernel, on_cell_begin, on_cell_end, …, on_done
//! ```
//!
//! # Example
//!
//! A scripted kernel runs a cell. Other kernels come from [`KernelSpec::start`], and are used in the same way.
//!
//! ```
//! use std::time::Duration;
//! use cellwright_kernel::backend::scripted::{ScriptStep, ScriptedKernel};
//! use cellwright_kernel::{Ending, Kernel, KernelError, Request, StopSignal};
//! use cellwright_output::{Capture, Limits, Stream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), KernelError> {
//! let steps = vec![ScriptStep::Print(Stream::Stdout, "42\n".to_owned())];
//! let (mut kernel, _calls) = ScriptedKernel::new([steps]);
//! let mut capture = Capture::new(Limits::default(), None);
//! let stop = StopSignal::never().with_timeout(Duration::from_secs(30));
//! let outcome = kernel.execute(&Request::new("print(6 * 7)"), &mut capture, &stop).await?;
//! assert!(matches!(outcome.ending, Ending::Completed));
//! assert_eq!(capture.finish().text, "42\n");
//! let report = Box::new(kernel).shutdown(StopSignal::never()).await;
//! assert!(report.graceful);
//! # Ok(())
//! # }
//! ```
//!
//! This crate does not print, does not read environment variables or the home directory, and does not know
//! notebooks.

pub mod backend;
mod env_json;
mod error;
mod execution;
mod kernel;
mod launch_context;
pub mod modules;
pub mod process;
pub mod python;
pub mod session;
mod spec;
mod stop;
pub mod variables;

pub use error::{Begun, KernelError, Retry, signal_name};
#[cfg(feature = "fuzz")]
pub use execution::replay_messages;
pub use kernel::{
    BoxFuture, Description, Ending, HistoryMode, InputAnswers, InputProvider, Kernel, KernelNotice,
    KernelQuery, KernelState, LateText, Outcome, Prompt, Request, ShutdownReport, Stdin,
};
pub use launch_context::LaunchContext;
pub use spec::{Backend, KernelId, KernelSpec};
pub use stop::{StopHandle, StopReason, StopSignal, TimeLimit};
