//! Small additions to the standard library that several crates need.
//!
//! * [`hex`] encodes bytes as hexadecimal text and decodes it.
//! * [`rfc3339`] formats timestamps.
//! * [`error_chain`] lists and formats the causes of an error.
//! * [`LockExt`] locks a mutex whether or not a thread panicked while holding it.
//! * [`private`] chooses, verifies and opens directories and files outside of the user's home.
//! * [`SpoolFile`] is an unnamed temporary file for data that exceeds its memory limit.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use cellwright_stdext::{SpoolFile, hex, rfc3339};
//!
//! # fn main() -> std::io::Result<()> {
//! let mut spool = SpoolFile::create()?;
//! let range = spool.append(&[0xca, 0xfe])?;
//! assert_eq!(hex::encode(&spool.read(range)?), "cafe");
//!
//! let time = SystemTime::UNIX_EPOCH + Duration::from_secs(951_782_400);
//! assert_eq!(rfc3339::format_seconds(time), "2000-02-29T00:00:00Z");
//! # Ok(())
//! # }
//! ```
//!
//! This crate depends on no other crate of the workspace, does not print, and reads no environment variable but `TMPDIR` ([`private::temporary`]).

pub mod error_chain;
pub mod hex;
mod lock;
pub mod private;
pub mod rfc3339;
mod spool_file;

pub use lock::LockExt;
pub use spool_file::{SpoolFile, SpoolWriter, read_chunks, read_range};
