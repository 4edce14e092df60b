//! The supervisor as a separate program, for users of this crate and for its tests. The `cellwright`
//! binary acts as its own supervisor.

use std::os::fd::AsFd;

use cellwright_kernel::process::{Supervisor, supervisor};

fn main() -> std::io::Result<()> {
    let owner = std::io::stdin().as_fd().try_clone_to_owned()?;
    let own_program = Supervisor {
        program: std::env::current_exe()?,
        arguments: Vec::new(),
    };
    supervisor::main(&owner, &own_program, std::env::args_os().skip(1))
}
