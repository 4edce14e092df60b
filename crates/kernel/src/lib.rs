//! Runs code on kernels.
//!
//! A [`Kernel`] is a place where code runs: it is given a [`Request`], pushes what happens into a
//! [`Sink`](cellwright_output::Sink), and returns how it ended. There is one sort so far,
//! [`backend::runner`]: a Python program of ours that needs nothing but an interpreter
//! ([`python`] finds one, [`environment`] says which variables it sees).
//!
//! Every kernel is a process under a supervisor ([`process`]): when its owner goes, in whatever way,
//! the kernel and everything it started go, too.
//!
//! This crate does not print, does not read the environment or the home folder, and knows nothing of
//! notebooks.

pub mod backend;
pub mod environment;
mod error;
mod kernel;
pub mod process;
pub mod python;
mod stop;

pub use error::{Begun, KernelError, Retry, signal_name};
pub use kernel::{
    Answers, BoxFuture, Description, Ending, Farewell, History, Kernel, LateText, Outcome,
    Question, Request, State, Stdin,
};
pub use stop::{Stop, StopReason, Stopper};
