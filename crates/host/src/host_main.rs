//! The entry point of a host process.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_engine::engine::Engine;
use cellwright_engine::logging;
use cellwright_engine::runtime_dir::RuntimeDir;
use cellwright_kernel::process::daemon;
use cellwright_stdext::error_chain;

use super::error::HostError;
use super::host_files::{ClaimResult, HostFiles};
use super::log::{Level, Log};
use super::server::Server;
use super::service::HostService;

/// The first argument that makes the binary a host.
pub(super) const HOST_ARG: &str = "__host";

/// The line that a host sends to its starter when clients can connect.
pub(super) const READY_LINE: &str = "ready";

/// The line that it sends when another host runs already.
pub(super) const ALREADY_RUNNING_LINE: &str = "taken";

/// The start of the line that it sends when it cannot start; the reason follows.
pub(super) const FAILED_LINE_PREFIX: &str = "failed: ";

/// Time limit for a host that is ending to release its lock.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(12);

/// Maximum number of worker threads.
const THREADS_MAX: usize = 4;

/// Runs the host if this process was started as one, and returns whether that succeeded. Otherwise returns `None`.
/// `engine` creates the engine of the host; `notify_starter` sends a line to the process that started it.
pub fn run_if_host(engine: fn() -> Engine, notify_starter: fn(&str)) -> Option<bool> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != HOST_ARG {
        return None;
    }
    daemon::close_inherited_descriptors();
    let succeeded = match run(arguments, engine, notify_starter) {
        Ok(()) => true,
        Err(error) => {
            notify_starter(&format!(
                "{FAILED_LINE_PREFIX}{}",
                error_chain::format(&error)
            ));
            false
        }
    };
    Some(succeeded)
}

fn run(
    mut arguments: impl Iterator<Item = OsString>,
    engine: fn() -> Engine,
    notify_starter: fn(&str),
) -> Result<(), HostError> {
    let path = arguments.next().map(PathBuf::from).unwrap_or_default();
    let idle_exit = arguments
        .next()
        .and_then(|text| text.to_str()?.parse().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero());
    daemon::detach();
    daemon::raise_descriptor_limit();
    std::env::set_current_dir("/").map_err(HostError::file("change to", "/"))?;
    let dir = RuntimeDir::create(&path)?;
    let (files, listener) = match HostFiles::claim(&dir, CLAIM_TIMEOUT)? {
        ClaimResult::Acquired(files, listener) => (files, listener),
        ClaimResult::AlreadyRunning => {
            notify_starter(ALREADY_RUNNING_LINE);
            return Ok(());
        }
    };
    let log = Arc::new(Log::open(&dir));
    log_panics(&log);
    log_events(&log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(thread_count())
        .thread_name("host")
        .enable_all()
        .build()
        .map_err(HostError::file("start threads in", dir.path()))?;
    let record = files.record();
    let message = format!(
        "started: pid {}, version {}, instance {}",
        record.pid, record.version, record.instance
    );
    log.write(Level::Info, &message);
    let runtime_guard = runtime.enter();
    let server = Server {
        service: Arc::new(HostService::new(engine(), &dir, &log)),
        files,
        log: Arc::clone(&log),
        idle_exit,
    };
    drop(runtime_guard);
    let served = runtime.block_on(server.serve(listener, || {
        notify_starter(READY_LINE);
        if let Err(error) = detach_output() {
            log.write(
                Level::Warn,
                &format!("cannot close the starter's pipe: {error}"),
            );
        }
    }));
    // A blocked thread must not keep the process alive.
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Err(error) = &served {
        log.write(Level::Error, &format!("ended after an error: {error}"));
    }
    served.map_err(HostError::file("serve in", dir.path()))
}

/// Number of worker threads. Kernels are separate processes and need the processors more: on two processors, a second
/// thread doubles the time of a short call.
fn thread_count() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).clamp(1, THREADS_MAX)
}

/// Redirects standard output to `/dev/null`: the starter no longer reads its pipe.
fn detach_output() -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    daemon::redirect_stdout(&null)
}

fn log_panics(log: &Arc<Log>) {
    let log = Arc::clone(log);
    std::panic::set_hook(Box::new(move |panic| {
        log.write(Level::Error, &format!("panic (this is a bug): {panic}"));
    }));
}

/// Writes the diagnostic events that `CELLWRIGHT_LOG` selects to the log.
fn log_events(log: &Arc<Log>) {
    let events = Arc::clone(log);
    let installed = logging::install(move |level, text| events.write(level.into(), text));
    if let Err(failure) = installed {
        log.write(Level::Warn, &failure.message);
    }
}
