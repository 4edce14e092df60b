//! The background process that starts a gateway, watches it and its kernels, and ends it.

mod gateway_process;
mod leftover_processes;
mod watch;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use cellwright_gateway::{PastedUrl, Secret};
use cellwright_kernel::process::Supervisor;
use cellwright_kernel::process::daemon::{self, ProcessIdentity};
use cellwright_stdext::{error_chain, private};

use crate::error::LocalGatewayError;
use crate::files::Generation;
use crate::health;
pub use crate::keeper_options::KEEPER_ARG;
use crate::keeper_options::{FAILED_LINE_PREFIX, KeeperOptions, OPTIONS_FILE, READY_LINE};
use crate::record::GatewayRecord;
use gateway_process::GatewayProcess;

/// Maximum size of the options in bytes.
const OPTIONS_LIMIT: u64 = 64 * 1024;

/// How long other processes may hold the lock to see whether a keeper runs.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Delay between two attempts.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Time limit of one request while the gateway starts.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// What a keeper needs from its program.
#[derive(Debug)]
pub struct KeeperContext {
    /// How to start a supervisor.
    pub supervisor: Supervisor,
    /// The environment variables of this process, which the gateway receives.
    pub env: Vec<(OsString, OsString)>,
    /// Sends a line to the process that started the keeper.
    pub notify_starter: fn(&str),
}

/// Runs the keeper of a gateway until the gateway ends. Returns whether the gateway started.
pub fn run(path: &Path, context: &KeeperContext) -> bool {
    daemon::close_inherited_descriptors();
    daemon::detach();
    match keep(path, context) {
        Ok(()) => true,
        Err(error) => {
            let reason = error_chain::format(&error).replace('\n', " ");
            (context.notify_starter)(&format!("{FAILED_LINE_PREFIX}{reason}"));
            false
        }
    }
}

fn keep(path: &Path, context: &KeeperContext) -> Result<(), LocalGatewayError> {
    rustix::process::chdir("/")
        .map_err(io::Error::from)
        .map_err(LocalGatewayError::io("change to", "/"))?;
    let invalid = || LocalGatewayError::io("use", path)(io::ErrorKind::InvalidInput.into());
    let generation = Generation::open(path).ok_or_else(invalid)?;
    let lock = lock(&generation)?;
    let options = generation.file(OPTIONS_FILE);
    let bytes = private::read_file(&options, OPTIONS_LIMIT);
    let bytes = bytes.map_err(LocalGatewayError::io("read", &options))?;
    let options: KeeperOptions = serde_json::from_slice(&bytes)
        .map_err(io::Error::from)
        .map_err(LocalGatewayError::io("read", options))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("gateway")
        .enable_all()
        .build()
        .map_err(LocalGatewayError::io("start threads in", path))?;
    let kept = runtime.block_on(async {
        let mut gateway = GatewayProcess::start(&generation, &options, context).await?;
        let record = match wait_until_ready(&generation, &options, &mut gateway).await {
            Ok(record) => record,
            Err(error) => {
                gateway.end().await;
                return Err(error);
            }
        };
        (context.notify_starter)(READY_LINE);
        // The starter no longer reads its pipe.
        if let Ok(null) = File::options().write(true).open("/dev/null") {
            daemon::redirect_stdout(&null).ok();
        }
        watch::watch(&generation, &options, &record, &mut gateway).await;
        // First: no process shall find a gateway that ends.
        std::fs::remove_file(generation.info()).ok();
        gateway.end().await;
        generation.remove();
        Ok(())
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    // Last: the lock shows that processes of the gateway may still run.
    drop(lock);
    kept
}

fn lock(generation: &Generation) -> Result<File, LocalGatewayError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(lock) = generation.lock_keeper()? {
            return Ok(lock);
        }
        if Instant::now() >= deadline {
            let busy = io::ErrorKind::ResourceBusy.into();
            return Err(LocalGatewayError::io("lock", &generation.path)(busy));
        }
        std::thread::sleep(RETRY_DELAY);
    }
}

/// Waits until the gateway has reported its port and accepts its token, and writes its record.
async fn wait_until_ready(
    generation: &Generation,
    options: &KeeperOptions,
    gateway: &mut GatewayProcess,
) -> Result<GatewayRecord, LocalGatewayError> {
    let deadline = tokio::time::Instant::now() + options.start_timeout;
    let port_file = generation.file("port");
    let gateway_pid = gateway.pid();
    let ready = async {
        loop {
            let port = std::fs::read_to_string(&port_file).unwrap_or_default();
            if let Ok(url) = PastedUrl::parse(&format!("http://127.0.0.1:{port}/"))
                && !port.is_empty()
            {
                let keeper = ProcessIdentity::current();
                let record = GatewayRecord {
                    url: url.url,
                    token: Secret::new(&options.token),
                    pid: keeper.pid,
                    start_ticks: keeper.start_ticks,
                    gateway_pid,
                    python: options.python.clone(),
                    version: options.version.clone(),
                    started_by: env!("CARGO_PKG_VERSION").to_owned(),
                    started: SystemTime::now(),
                };
                if health::list_kernels(&record, REQUEST_TIMEOUT).await.is_ok() {
                    return record;
                }
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    };
    let record = {
        let exited = gateway.exited();
        tokio::select! {
            record = tokio::time::timeout_at(deadline, ready) => record.ok(),
            reason = exited => {
                let log = Vec::new();
                return Err(LocalGatewayError::NotStarted { reason, log });
            }
        }
    };
    let record = record.ok_or(LocalGatewayError::NotReady {
        after: options.start_timeout,
        log: Vec::new(),
    })?;
    let info = generation.info();
    record
        .write(&info)
        .map_err(LocalGatewayError::io("write", info))?;
    Ok(record)
}
