//! The sorts of kernels there are.

pub mod jupyter;
mod late;
pub mod runner;
#[cfg(feature = "scripted")]
pub mod scripted;
