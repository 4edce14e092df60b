//! Directories and files outside of the user's home, and the rules for them.
//!
//! Temporary directories are shared: other users create files and directories there, under any name that is not taken.
//! All directories and files in such places come from this module, and from here follow these properties:
//!
//! * **No other user can replace them.** A directory is used if every directory above it belongs to this user or to the
//!   system and either is not writable by other users or is sticky ([`safe_dir`]). Directories with files of the user belong
//!   to the user, and other users have no access to them ([`PrivateDir`]).
//! * **No other user can predict or occupy a needed name.** A temporary directory has a random name ([`temporary`]). The one
//!   name that is fixed, [`temporary::user_dirs`], is not used if another user has taken it.
//! * **What another user put next to the files of this user does not count** ([`OwnerRule`]): markers, settings and environments.
//! * **Opening a file does not wait and follows no link** ([`open_file`]): a pipe or a link in place of a file is an error.
//!
//! The functions block for as long as the file system takes. Asynchronous code calls them on a thread for blocking work.

mod dir;
mod file;
mod foreign;
mod owner;
pub mod temporary;

pub use dir::{PrivateDir, PrivateDirError, create_safe_dir, is_writable, safe_dir};
pub use file::{open_file, read_file, replace_file};
pub use foreign::{ForeignPath, OwnerRule};
pub use owner::effective_user;
