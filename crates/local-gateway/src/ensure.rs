//! Finds the gateway of a user, or starts one. A process id in a file proves nothing: the gateway must answer.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use cellwright_gateway::Server;
use cellwright_stdext::{hex, private};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::error::LocalGatewayError;
use crate::files::{GatewayDir, Generation, KeeperState};
use crate::health::{self, Health};
use crate::keeper_options::{
    CONFIG_FILE, FAILED_LINE_PREFIX, KEEPER_ARG, KeeperOptions, OPTIONS_FILE, READY_LINE,
};
use crate::log;
use crate::packages::Packages;
use crate::record::GatewayRecord;

/// The configuration of the gateway: see the file.
const CONFIG: &str = include_str!("../python/gateway_config.py");

/// Delay between two attempts to lock or to find a gateway that is starting.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Longest path of a directory with the sockets of kernels, in bytes: Jupyter appends 50 bytes, systems allow 104 or 108.
const SOCKET_DIR_MAX: usize = 52;

/// How to start a gateway if none runs.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The program that `keeper::run` is called in, with `keeper::KEEPER_ARG` as its first argument.
    pub program: PathBuf,
    /// The interpreter that runs the gateway.
    pub python: PathBuf,
    /// The environment variables of the gateway. Kernels receive those of their clients instead.
    pub env: Vec<(OsString, OsString)>,
    /// How long all steps may take together.
    pub start_timeout: Duration,
    /// After how much time without kernels the gateway ends. Zero: never.
    pub idle_timeout: Duration,
}

/// A gateway that answered.
#[derive(Clone, Debug)]
pub struct RunningGateway {
    /// Address, token and processes.
    pub record: GatewayRecord,
    /// Its directory and number.
    pub generation: Generation,
    /// Whether this call started it.
    pub started: bool,
}

impl RunningGateway {
    /// How to reach it.
    pub fn server(&self) -> Server {
        self.record.server()
    }

    /// Whether the end of its log reports that it has no descriptors left.
    pub fn is_exhausted(&self) -> bool {
        log::shows_exhaustion(&log::tail(&self.generation))
    }
}

/// Finds the gateway of a directory, or starts one. Two processes that call it at the same time start one gateway. With
/// `exhausted`, gateways up to that number get no new kernels: another one is started, and they keep their kernels.
pub async fn ensure_running(
    dir: &GatewayDir,
    options: &StartOptions,
    exhausted: Option<u32>,
) -> Result<RunningGateway, LocalGatewayError> {
    let deadline = Instant::now() + options.start_timeout;
    let after = exhausted.unwrap_or(0);
    if let Found::Running(gateway) = find(dir, after).await? {
        return Ok(*gateway);
    }
    let _start_lock = lock_start(dir, deadline, options.start_timeout).await?;
    loop {
        match find(dir, after).await? {
            Found::Running(gateway) => return Ok(*gateway),
            Found::None => break,
            // The process that started it was killed. Its keeper gets ready, or ends.
            Found::Starting(generation) if Instant::now() >= deadline => {
                return Err(not_ready(options, &generation));
            }
            Found::Starting(_) => sleep(RETRY_DELAY).await,
        }
    }
    dir.remove_stale();
    let packages = Packages::query(&options.python, &options.env).await?;
    packages.check(&options.python)?;
    let generation = dir.create_generation()?;
    let started = start(dir, &generation, options, packages.gateway, deadline).await;
    if started.is_err() {
        generation.remove();
    }
    started
}

enum Found {
    Running(Box<RunningGateway>),
    Starting(Generation),
    None,
}

/// Finds the newest gateway with a number above `after` that answers.
async fn find(dir: &GatewayDir, after: u32) -> Result<Found, LocalGatewayError> {
    for generation in dir.generations() {
        if generation.number <= after {
            break;
        }
        match generation.keeper()? {
            KeeperState::Gone => {}
            KeeperState::Starting => return Ok(Found::Starting(generation)),
            KeeperState::Running(record) => {
                // First, so that an idle gateway does not end now.
                generation.record_use();
                match health::check(&record).await {
                    Health::Healthy(_) => {
                        return Ok(Found::Running(Box::new(RunningGateway {
                            record: *record,
                            generation,
                            started: false,
                        })));
                    }
                    unhealthy => debug!(?unhealthy, "the gateway is not used"),
                }
            }
        }
    }
    Ok(Found::None)
}

async fn lock_start(
    dir: &GatewayDir,
    deadline: Instant,
    after: Duration,
) -> Result<File, LocalGatewayError> {
    loop {
        if let Some(lock) = dir.try_lock_start()? {
            return Ok(lock);
        }
        if Instant::now() >= deadline {
            let log = Vec::new();
            return Err(LocalGatewayError::NotReady { after, log });
        }
        sleep(RETRY_DELAY).await;
    }
}

fn not_ready(options: &StartOptions, generation: &Generation) -> LocalGatewayError {
    LocalGatewayError::NotReady {
        after: options.start_timeout,
        log: log::last_lines(generation),
    }
}

/// Starts a keeper and waits until its gateway answers.
async fn start(
    dir: &GatewayDir,
    generation: &Generation,
    options: &StartOptions,
    version: Option<String>,
    deadline: Instant,
) -> Result<RunningGateway, LocalGatewayError> {
    write_files(generation, options, version, deadline)?;
    let log_file = generation.file("gateway.log");
    let stderr =
        log::open_for_append(generation).map_err(LocalGatewayError::io("open", log_file))?;
    let mut keeper = Command::new(&options.program)
        .arg0("cellwright")
        .arg(KEEPER_ARG)
        .arg(&generation.path)
        .env_clear()
        .envs(gateway_env(dir, generation, options))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .map_err(LocalGatewayError::io("start", &options.program))?;
    let mut line = String::new();
    if let Some(stdout) = keeper.stdout.take() {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let mut stdout = BufReader::new(stdout);
        if timeout(remaining, stdout.read_line(&mut line))
            .await
            .is_err()
        {
            // Its supervisor ends the gateway.
            keeper.start_kill().ok();
            keeper.wait().await.ok();
            return Err(not_ready(options, generation));
        }
    }
    let failed = |reason: String| LocalGatewayError::NotStarted {
        reason,
        log: log::last_lines(generation),
    };
    match line.trim_end() {
        READY_LINE => {
            // Reaped when it ends, if this process still runs.
            tokio::spawn(async move { keeper.wait().await });
            let record = GatewayRecord::read(&generation.info());
            let record = record.ok_or_else(|| failed("its record was removed".to_owned()))?;
            generation.record_use();
            Ok(RunningGateway {
                record,
                generation: generation.clone(),
                started: true,
            })
        }
        "" => Err(failed(match keeper.wait().await {
            Ok(status) => format!("its keeper ended without a message ({status})"),
            Err(error) => error.to_string(),
        })),
        line => {
            keeper.wait().await.ok();
            let reason = line.strip_prefix(FAILED_LINE_PREFIX).unwrap_or(line);
            Err(failed(reason.to_owned()))
        }
    }
}

/// Writes what the keeper and the gateway read.
fn write_files(
    generation: &Generation,
    options: &StartOptions,
    version: Option<String>,
    deadline: Instant,
) -> Result<(), LocalGatewayError> {
    let mut token = [0_u8; 32];
    let fill = getrandom::fill(&mut token).map_err(std::io::Error::from);
    fill.map_err(LocalGatewayError::io("create a token in", &generation.path))?;
    // The sockets of kernels are in the private directory, unless its path is too long for sockets.
    let is_short = generation.runtime_dir().as_os_str().len() <= SOCKET_DIR_MAX;
    let keeper_options = KeeperOptions {
        token: hex::encode(&token),
        transport: if is_short { "ipc" } else { "tcp" }.to_owned(),
        python: options.python.clone(),
        version,
        idle_timeout: options.idle_timeout,
        start_timeout: deadline.saturating_duration_since(Instant::now()),
    };
    let write = |name: &str, content: &[u8]| {
        let path = generation.file(name);
        private::replace_file(&path, content).map_err(LocalGatewayError::io("write", path))
    };
    let json = serde_json::to_vec(&keeper_options).map_err(std::io::Error::from);
    let json = json.map_err(LocalGatewayError::io(
        "write",
        generation.file(OPTIONS_FILE),
    ))?;
    write(OPTIONS_FILE, &json)?;
    write(CONFIG_FILE, CONFIG.as_bytes())
}

/// The environment of keeper and gateway. Only the configuration of Cellwright counts, but all kernelspecs of the user.
fn gateway_env(
    dir: &GatewayDir,
    generation: &Generation,
    options: &StartOptions,
) -> Vec<(OsString, OsString)> {
    let mut env = options.env.clone();
    let mut path = dir.kernelspecs().into_os_string();
    let own = env.iter().find(|(name, _)| name == "JUPYTER_PATH");
    if let Some((_, more)) = own.filter(|(_, value)| !value.as_bytes().is_empty()) {
        path.push(":");
        path.push(more);
    }
    let set: [(&str, OsString); 6] = [
        ("JUPYTER_PATH", path),
        ("JUPYTER_NO_CONFIG", "1".into()),
        ("JUPYTER_CONFIG_DIR", generation.path.clone().into()),
        ("JUPYTER_RUNTIME_DIR", generation.runtime_dir().into()),
        // Without its configuration, the gateway would accept requests without a token.
        ("TRAITLETS_APPLICATION_RAISE_CONFIG_FILE_ERROR", "1".into()),
        ("PYTHONUNBUFFERED", "1".into()),
    ];
    // Variables that would change the gateway.
    env.retain(|(name, _)| {
        let is_set = set.iter().any(|(other, _)| name == other);
        !is_set && !name.as_bytes().starts_with(b"KG_")
    });
    env.extend(set.map(|(name, value)| (name.into(), value)));
    env
}
