//! The program file of this process, and its role as the supervisor of a kernel.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cellwright_kernel::backend::jupyter::gateway::run_lease;
use cellwright_kernel::process::{Supervisor, supervisor};

use crate::env;
use crate::environment::is_own_variable;

/// First argument of a process that is the supervisor of a kernel.
pub const SUPERVISE_ARG: &str = "__supervise";

/// Whether this program calls [`run_supervisor`], so that it can start itself as a supervisor.
static IS_SUPERVISED: AtomicBool = AtomicBool::new(false);

/// Runs the supervisor if this process was started as one. Returns whether it succeeded; `None` for other processes.
pub fn run_supervisor() -> Option<bool> {
    IS_SUPERVISED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != SUPERVISE_ARG {
        return None;
    }
    let Ok(owner) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return Some(false);
    };
    let result = run_lease(std::env::args_os().skip(2), &owner);
    Some(result.unwrap_or_else(|| supervisor::main(&owner)).is_ok())
}

/// How to start this program as a supervisor, even if its file was replaced since. All kernels of this process share the
/// supervisor that was started early.
pub fn own_supervisor() -> &'static Supervisor {
    static SUPERVISOR: OnceLock<Supervisor> = OnceLock::new();
    SUPERVISOR.get_or_init(|| {
        let own = |(name, value): &(OsString, OsString)| {
            let name = name.to_str();
            name.is_some_and(|name| is_own_variable(name, value))
        };
        let env = env::all().into_iter().filter(own).collect();
        Supervisor::new(current_program(), vec![SUPERVISE_ARG.into()]).with_env(env)
    })
}

/// Whether [`run_supervisor`] was called: kernels of this process have a supervisor.
pub fn is_supervised() -> bool {
    IS_SUPERVISED.load(Ordering::Relaxed)
}

/// Path of the program of this process. On Linux it also works after the file was replaced or removed.
pub fn current_program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let link = Path::new("/proc/self/exe");
        if link.exists() {
            return link.to_owned();
        }
        std::env::current_exe().unwrap_or_else(|_| OsStr::new("cellwright").into())
    });
    program.clone()
}
