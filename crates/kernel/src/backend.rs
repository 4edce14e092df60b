//! The backends: implementations of [`Kernel`](crate::Kernel).

pub mod jupyter;
mod late_output;
mod launch_error;
pub mod runner;
#[cfg(feature = "scripted")]
pub mod scripted;
