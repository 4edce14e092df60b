//! The shared gateway of this user: one Jupyter Kernel Gateway on this machine for the kernels of all processes and projects.

mod failure;
mod start_kernel;

use std::path::PathBuf;

use cellwright_gateway::Server;
use cellwright_local_gateway::RunningGateway;
use cellwright_local_gateway::keeper::{self, KEEPER_ARG, KeeperContext};

pub use failure::into_failure;
pub use start_kernel::start_kernel;

use crate::env;
use crate::program::own_supervisor;
use crate::runtime_dir;

/// Subdirectory of the runtime directory.
const DIR: &str = "gateway";

/// The name of the shared gateway in messages and reports.
pub use cellwright_kernel::backend::jupyter::gateway::LOCAL as NAME;

/// The directory of the shared gateway.
pub fn dir() -> PathBuf {
    runtime_dir::default_path().join(DIR)
}

/// Runs the keeper of a gateway if this process was started as one, and returns whether the gateway started. Otherwise
/// returns `None`. `notify_starter` sends a line to the process that started it.
pub fn run_if_keeper(notify_starter: fn(&str)) -> Option<bool> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != KEEPER_ARG {
        return None;
    }
    let path = arguments.next().map(PathBuf::from).unwrap_or_default();
    let context = KeeperContext {
        supervisor: own_supervisor().clone(),
        env: env::all(),
        notify_starter,
    };
    Some(keeper::run(&path, &context))
}

/// How to reach a gateway.
pub(crate) fn server(gateway: &RunningGateway) -> Server {
    Server {
        name: Some(NAME.to_owned()),
        ..gateway.server()
    }
}
