//! The supervisor as a separate program, for users of this crate and for its tests. The `cellwright`
//! binary acts as its own supervisor.

use std::os::fd::AsFd;

use cellwright_kernel::process::supervisor;

fn main() -> std::io::Result<()> {
    let owner = std::io::stdin().as_fd().try_clone_to_owned()?;
    supervisor::main(&owner, std::env::args_os().skip(1))
}
