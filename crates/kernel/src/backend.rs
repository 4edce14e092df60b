//! The sorts of kernels there are.

pub mod runner;
#[cfg(feature = "scripted")]
pub mod scripted;
