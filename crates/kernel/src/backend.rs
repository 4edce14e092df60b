//! The backends: implementations of [`Kernel`](crate::Kernel).

pub mod jupyter;
mod late;
pub mod runner;
#[cfg(feature = "scripted")]
pub mod scripted;
