//! The backends: implementations of [`Kernel`](crate::Kernel).

pub mod jupyter;
mod late_output;
pub mod runner;
#[cfg(feature = "scripted")]
pub mod scripted;
