//! The entry of a host: how the binary becomes one, and how it goes.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::process::background;

use super::error::HostError;
use super::folder::Folder;
use super::log::{Level, Log};
use super::place::{Claim, Place};
use super::server::{Server, with_cause};
use super::service;
use crate::screen;

/// The first argument by which the binary becomes a host.
pub(super) const HOST: &str = "__host";

/// What a host tells its starter when clients can come.
pub(super) const READY: &str = "ready";

/// What it tells when there is one already.
pub(super) const TAKEN: &str = "taken";

/// What it tells before saying why it cannot start.
pub(super) const FAILED: &str = "failed: ";

/// How long one that is just ending is waited for.
const PATIENCE: Duration = Duration::from_secs(12);

/// The most threads that pass things on.
const MOST_THREADS: usize = 4;

/// If this process was started to be a host: is one, and says how it went.
pub(crate) fn host() -> Option<bool> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != HOST {
        return None;
    }
    background::close_inherited();
    let well = match run(arguments) {
        Ok(()) => true,
        Err(error) => {
            screen::tell_starter(&format!("{FAILED}{}", with_cause(&error)));
            false
        }
    };
    Some(well)
}

fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), HostError> {
    let path = arguments.next().map(PathBuf::from).unwrap_or_default();
    let idle_exit = arguments
        .next()
        .and_then(|text| text.to_str()?.parse().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero());
    background::detach();
    background::allow_descriptors();
    std::env::set_current_dir("/").map_err(HostError::file("go to", "/"))?;
    let folder = Folder::make(path)?;
    let (place, listener) = match Place::claim(&folder, PATIENCE)? {
        Claim::Ours(place, listener) => (place, listener),
        Claim::Taken => {
            screen::tell_starter(TAKEN);
            return Ok(());
        }
    };
    let log = Arc::new(Log::open(&folder));
    log_panics(&log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads())
        .thread_name("host")
        .enable_all()
        .build()
        .map_err(HostError::file("start threads in", folder.path()))?;
    let record = place.record();
    let words = format!(
        "started: pid {}, version {}, instance {}",
        record.pid, record.version, record.instance
    );
    log.write(Level::Info, &words);
    let inside = runtime.enter();
    let server = Server {
        service: service::of(&folder, &log),
        place,
        log: Arc::clone(&log),
        idle_exit,
    };
    drop(inside);
    let served = runtime.block_on(server.serve(listener, || {
        screen::tell_starter(READY);
        if let Err(error) = let_go_of_output() {
            log.write(Level::Warn, &format!("the starter's pipe is kept: {error}"));
        }
    }));
    // Something that blocks must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Err(error) = &served {
        log.write(Level::Error, &format!("ended by an error: {error}"));
    }
    served.map_err(HostError::file("serve in", folder.path()))
}

/// How many threads pass things on. Kernels are processes of their own, and need the processors more:
/// with two of them, a second thread doubles the time of a short call.
fn threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).clamp(1, MOST_THREADS)
}

/// Nobody listens to the starter's pipe any more.
fn let_go_of_output() -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    background::redirect_output(&null)
}

fn log_panics(log: &Arc<Log>) {
    let log = Arc::clone(log);
    std::panic::set_hook(Box::new(move |panic| {
        log.write(Level::Error, &format!("this is a bug: {panic}"));
    }));
}
