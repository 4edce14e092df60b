//! [`GatewayProcess`]: `python -m kernel_gateway` under a supervisor.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_kernel::process::{ChildCommand, Exit, StartError, Supervised};
use cellwright_stdext::{Directory, LockExt};

use super::KeeperContext;
use crate::error::LocalGatewayError;
use crate::files::Generation;
use crate::keeper_options::{CONFIG_FILE, KeeperOptions};
use crate::log::LogWriter;

/// How long the gateway may take to end its kernels after SIGTERM.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(4);

/// How long the supervisor may take to end all other processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(4);

/// The gateway. Its supervisor ends it and all kernels when this process ends, however it ends.
pub(super) struct GatewayProcess {
    process: Option<Supervised>,
    pid: u32,
}

impl GatewayProcess {
    pub(super) async fn start(
        generation: &Generation,
        options: &KeeperOptions,
        context: &KeeperContext,
    ) -> Result<Self, LocalGatewayError> {
        let runtime = generation.runtime_dir();
        let private = cellwright_stdext::private::PrivateDir::create(&runtime)?;
        let mut config = OsString::from("--config=");
        config.push(generation.file(CONFIG_FILE));
        let command = ChildCommand {
            arguments: vec![
                options.python.clone().into(),
                "-m".into(),
                "kernel_gateway".into(),
                config,
            ],
            env: context.env.clone(),
            // Modules in the working directory come before installed ones: this one is empty.
            cwd: Directory::from(private.path()),
        };
        let started = Supervised::start(&context.supervisor, &command).await;
        let (process, pipes) = started.map_err(|error| {
            let (StartError::Supervisor(source) | StartError::Program(source)) = error else {
                return LocalGatewayError::NotStarted {
                    reason: error.to_string(),
                    log: Vec::new(),
                };
            };
            LocalGatewayError::io("start", &options.python)(source)
        })?;
        let log = Arc::new(Mutex::new(LogWriter::open(generation)));
        for pipe in [pipes.stdout, pipes.stderr] {
            let copied = copy_to_log(pipe, Arc::clone(&log));
            copied.map_err(LocalGatewayError::io("read the output of", &options.python))?;
        }
        Ok(Self {
            pid: process.pid(),
            process: Some(process),
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the gateway has ended. Returns how.
    pub(super) async fn exited(&mut self) -> String {
        let exit = match &mut self.process {
            Some(process) => process.wait().await,
            None => Exit::UNKNOWN,
        };
        format!("it ended: {exit:?}")
    }

    /// Ends the gateway, its kernels and all that they started.
    pub(super) async fn end(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        if process.exit().is_none() {
            process.terminate();
            tokio::time::timeout(TERMINATE_TIMEOUT, process.wait())
                .await
                .ok();
        }
        process.wait_all_gone(KILL_TIMEOUT).await;
    }
}

/// Copies what the gateway prints to the log, on another thread.
fn copy_to_log(pipe: OwnedFd, log: Arc<Mutex<LogWriter>>) -> io::Result<()> {
    let copy = move || {
        let mut pipe = File::from(pipe);
        let mut buffer = [0_u8; 8192];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            log.lock_ignoring_poison().write(&buffer[..length]);
        }
    };
    let thread = std::thread::Builder::new().name("gateway log".to_owned());
    thread.spawn(copy).map(drop)
}
