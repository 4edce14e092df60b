//! Runs code on kernels.
//!
//! A [`Kernel`] is a place where code runs: it is given a [`Request`], pushes what happens into a
//! [`Sink`](cellwright_output::Sink), and returns how it ended. There is one sort so far,
//! [`backend::runner`]: a Python program of ours that needs nothing but an interpreter
//! ([`python`] finds one, [`environment`] says which variables it sees).
//!
//! ```no_run
//! use std::{path::PathBuf, time::Duration};
//! use cellwright_kernel::backend::runner::{INTERRUPT_GRACE, Runner, RunnerSpec};
//! use cellwright_kernel::{Kernel, KernelError, Request, Stop, process::Supervisor, python};
//! use cellwright_output::{Capture, Limits};
//!
//! # async fn example() -> Result<(), KernelError> {
//! let search = python::Search { path: vec!["/usr/bin".into()], ..Default::default() };
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
//! let mut kernel = Runner::start(&spec, &Stop::never()).await?;
//! let mut capture = Capture::new(Limits::default(), None);
//! let stop = Stop::never().with_timeout(Duration::from_secs(30));
//! let outcome = kernel.execute(&Request::new("6 * 7"), &mut capture, &stop).await?;
//! println!("{:?}: {}", outcome.ending, capture.finish().text);
//! Box::new(kernel).shutdown(Stop::never().with_timeout(Duration::from_secs(1))).await;
//! # Ok(())
//! # }
//! ```
//!
//! [`modules`] are files of the user's own that run before the first cell.
//!
//! Every kernel is a process under a supervisor ([`process`]): when its owner goes, in whatever way,
//! the kernel and everything it started go, too.
//!
//! This crate does not print, does not read the environment or the home folder, and knows nothing of
//! notebooks.

pub mod backend;
pub mod environment;
mod error;
mod exchange;
mod kernel;
pub mod modules;
pub mod process;
pub mod python;
pub mod session;
mod stop;

pub use error::{Begun, KernelError, Retry, signal_name};
#[cfg(feature = "fuzz")]
pub use exchange::hear;
pub use kernel::{
    Answers, Asker, BoxFuture, Description, Ending, Farewell, History, Kernel, LateText, Outcome,
    Prompt, Question, Remark, Request, State, Stdin,
};
pub use stop::{Stop, StopReason, Stopper};
