//! The supervisor as a separate program, for users of this crate and for its tests. The `cellwright`
//! binary acts as its own supervisor.

use std::os::fd::AsFd;

use cellwright_kernel::backend::jupyter::gateway::run_lease;
use cellwright_kernel::process::supervisor;

fn main() -> std::io::Result<()> {
    let owner = std::io::stdin().as_fd().try_clone_to_owned()?;
    let result = run_lease(std::env::args_os().skip(1), &owner);
    result.unwrap_or_else(|| supervisor::main(&owner))
}
