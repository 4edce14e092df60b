//! Runs code on kernels.
//!
//! A tour, in the order in which a newcomer meets the types:
//!
//! * [`Kernel`] is the interface of all backends. [`Kernel::execute`] takes a [`Request`] (one cell), pushes
//!   output events into a [`Sink`](cellwright_output::Sink), and returns an [`Outcome`].
//! * [`StopSignal`] ends an execution early; the caller keeps its [`StopHandle`] or sets a timeout.
//! * [`KernelError`] is a failure of the kernel, not of the code; [`KernelError::retry`] is the retry policy.
//! * [`backend::runner`] is a bundled Python program that needs only an interpreter: [`python`] finds one,
//!   [`environment`] selects its environment variables. [`backend::jupyter`] runs Jupyter kernels, started
//!   from a kernelspec or attached through a connection file. `backend::scripted` (feature `scripted`) is for
//!   tests.
//! * [`session`] keeps kernels across calls: [`session::Sessions`] is a pool of sessions that queue, run and
//!   report [`session::Job`]s.
//! * [`process`] runs every kernel under a supervisor process: when the owner ends, in whatever way, the
//!   kernel and all its descendants end, too.
//! * [`modules`] are the user's files that run before the first cell.
//!
//! ```no_run
//! use std::{path::PathBuf, time::Duration};
//! use cellwright_kernel::backend::runner::{INTERRUPT_GRACE, Runner, RunnerSpec};
//! use cellwright_kernel::{Kernel, KernelError, Request, StopSignal, process::Supervisor, python};
//! use cellwright_output::{Capture, Limits};
//!
//! # async fn example() -> Result<(), KernelError> {
//! let search = python::InterpreterSearch { path: vec!["/usr/bin".into()], ..Default::default() };
//! let interpreter = python::resolve(&search).map_err(|rejected| KernelError::NoPython { rejected })?;
//! let spec = RunnerSpec {
//!     interpreter,
//!     cwd: PathBuf::from("."),
//!     env: Vec::new(),
//!     supervisor: Supervisor { program: "cellwright-supervisor".into(), arguments: Vec::new() },
//!     staging: vec![PathBuf::from("/tmp/my-cache")],
//!     start_timeout: Duration::from_mins(1),
//!     interrupt_grace: INTERRUPT_GRACE,
//!     trace: None,
//! };
//! let mut kernel = Runner::start(&spec, &StopSignal::never()).await?;
//! let mut capture = Capture::new(Limits::default(), None);
//! let stop = StopSignal::never().with_timeout(Duration::from_secs(30));
//! let outcome = kernel.execute(&Request::new("6 * 7"), &mut capture, &stop).await?;
//! println!("{:?}: {}", outcome.ending, capture.finish().text);
//! Box::new(kernel).shutdown(StopSignal::never().with_timeout(Duration::from_secs(1))).await;
//! # Ok(())
//! # }
//! ```
//!
//! This crate does not print, does not read environment variables or the home folder, and does not know
//! notebooks.

pub mod backend;
pub mod environment;
mod error;
mod execution;
mod kernel;
pub mod modules;
pub mod process;
pub mod python;
pub mod session;
mod stop;

pub use error::{Begun, KernelError, Retry, signal_name};
#[cfg(feature = "fuzz")]
pub use execution::replay_messages;
pub use kernel::{
    BoxFuture, CannedAnswers, Description, Ending, HistoryMode, InputProvider, Kernel,
    KernelNotice, KernelQuery, KernelState, LateText, Outcome, Prompt, Request, ShutdownReport,
    Stdin,
};
pub use stop::{StopHandle, StopReason, StopSignal};
