//! Real servers on loopback for tests of the gateway client.

mod distributed;
mod engine;
mod hub;
mod options;
mod processes;
mod request;

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use self::engine::Installation;
use self::hub::Hub;
use self::request::Target;
use crate::tls::client_config;

pub use self::engine::Engine;
pub use self::options::GatewayOptions;
pub use self::processes::processes_of;

const START_TIMEOUT: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of ports that are tried: another process may take a port before the server does.
const START_ATTEMPTS_MAX: usize = 4;
/// Size of the end of the log that a failure shows.
const LOG_TAIL_SIZE: usize = 4000;

/// Variables of the environment and directories below that of the server.
const DIRECTORIES: [(&str, &str); 6] = [
    ("HOME", "home"),
    ("TMPDIR", "tmp"),
    ("JUPYTER_DATA_DIR", "data"),
    ("JUPYTER_CONFIG_DIR", "config"),
    ("JUPYTER_RUNTIME_DIR", "runtime"),
    ("IPYTHONDIR", "ipython"),
];

/// A running server. All its processes are killed when it is dropped.
pub struct GatewayServer {
    engine: Engine,
    options: GatewayOptions,
    installation: Installation,
    /// Home, Jupyter directories and log of the server.
    directory: TempDir,
    port: u16,
    token: String,
    child: Option<Child>,
    /// Only used by [`Engine::JupyterHub`].
    hub: Hub,
}

impl GatewayServer {
    /// Starts a server and waits until it replies. `None`, with a report, if the engine is not installed.
    pub fn start(engine: Engine) -> Option<Self> {
        Self::start_with(engine, GatewayOptions::new())
    }

    /// Starts a server with options and waits until it replies. `None`, with a report, if the engine is not installed.
    pub fn start_with(engine: Engine, options: GatewayOptions) -> Option<Self> {
        options.check(engine);
        let installation = engine.installation()?;
        let directory = tempfile::Builder::new()
            .prefix("cellwright-gateway-")
            .tempdir()
            .unwrap();
        fs::create_dir(directory.path().join("work")).unwrap();
        for (_, name) in DIRECTORIES {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let mut server = Self {
            engine,
            options,
            installation,
            directory,
            port: 0,
            token: random_text(),
            child: None,
            hub: Hub::new(random_text()),
        };
        server.write_configuration();
        for attempt in 1.. {
            server.port = free_port();
            match server.launch() {
                Ok(()) => break,
                Err(log) => assert!(
                    attempt < START_ATTEMPTS_MAX && log.contains("in use"),
                    "{engine:?} does not start:\n{log}"
                ),
            }
        }
        Some(server)
    }

    /// The engine of this server.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The base URL, with a slash at its end.
    pub fn url(&self) -> String {
        let scheme = if self.options.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://127.0.0.1:{}{}", self.port, self.base_path())
    }

    /// Address and port, for proxies before the server.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The token. A server with a password does not accept it.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Everything that the server has printed.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The directory of the server; its kernels start in `work` below it. Its name identifies the processes.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process that replies: of [`Engine::JupyterHub`], the server of the user.
    pub fn pid(&self) -> u32 {
        match self.engine {
            Engine::JupyterHub => self.hub.server_pid,
            _ => self.child.as_ref().unwrap().id(),
        }
    }

    /// The live processes of the server: itself, kernels and their descendants.
    pub fn processes(&self) -> Vec<u32> {
        processes_of(self.directory())
    }

    /// Sends SIGKILL to the process [`pid`](Self::pid) only and waits for its end. Kernels continue until they notice.
    pub fn kill(&mut self) {
        match self.engine {
            Engine::JupyterHub => self.hub.kill_server(self.directory.path()),
            _ => self.kill_child(),
        }
    }

    /// Kills the server if it runs, and starts a new process with the same URL and token. The hub of
    /// [`Engine::JupyterHub`] continues.
    pub fn restart_on_same_port(&mut self) {
        self.kill();
        if self.engine == Engine::JupyterHub {
            self.hub.server_pid = self.hub.spawn(self);
        } else if let Err(log) = self.launch() {
            unreachable!("{:?} does not start again:\n{log}", self.engine);
        }
    }

    fn kill_child(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends a request with the token to a path below the base URL, and returns status and body.
    pub fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let path = format!("{}{}", self.base_path(), path.trim_start_matches('/'));
        request::send(&self.target(), method, &path, body).unwrap()
    }

    fn base_path(&self) -> String {
        let base = self.options.base_path.as_deref().unwrap_or("/");
        match self.engine {
            Engine::JupyterHub => format!("{base}{}", hub::user_path()),
            _ => base.to_owned(),
        }
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn target(&self) -> Target {
        let tls = self.options.tls.as_ref().map(|tls| {
            let identity = tls.authority.client("probe");
            Arc::new(client_config(&tls.authority, Some(&identity)))
        });
        let token = self.options.password.is_none().then(|| self.token.clone());
        Target {
            address: self.address(),
            tls,
            token,
        }
    }

    /// Writes what the server reads at its start.
    fn write_configuration(&self) {
        if let Some(password) = &self.options.password {
            let text = format!(
                "from jupyter_server.auth import passwd\n\
                 c.PasswordIdentityProvider.hashed_password = passwd({password:?}, algorithm='sha256')\n\
                 c.IdentityProvider.token = ''\n"
            );
            let path = self.directory.path().join("config");
            fs::write(path.join("jupyter_server_config.py"), text).unwrap();
        }
        if self.engine == Engine::EnterpriseGatewayDistributed {
            distributed::write_kernelspec(self.directory.path(), &self.installation.python);
        }
    }

    /// Starts the process and waits until it replies. The error is the end of its log.
    fn launch(&mut self) -> Result<(), String> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        let mut command = self.command();
        command
            .current_dir(self.directory.path().join("work"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.child = Some(command.spawn().unwrap());
        let start = Instant::now();
        loop {
            let status = self.child.as_mut().unwrap().try_wait().unwrap();
            if status.is_none() && self.is_ready() {
                break;
            }
            if status.is_some() || start.elapsed() > START_TIMEOUT {
                self.kill_child();
                return Err(format!("{status:?}\n{}", self.log_tail()));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        if self.engine == Engine::JupyterHub {
            self.token = self.hub.create_user(self);
            self.hub.server_pid = self.hub.spawn(self);
        }
        Ok(())
    }

    /// Whether the server replies. Another process could listen on its port, but would not know the token.
    fn is_ready(&self) -> bool {
        if self.engine == Engine::JupyterHub {
            return self.hub.is_ready(self);
        }
        let path = format!("{}api", self.base_path());
        let reply = request::send(&self.target(), "GET", &path, "");
        matches!(reply, Ok((200, _)))
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let start = log.len().saturating_sub(LOG_TAIL_SIZE);
        let start = (start..log.len()).find(|index| log.is_char_boundary(*index));
        log[start.unwrap_or(0)..].to_owned()
    }

    /// The command that starts the server.
    fn command(&self) -> Command {
        let class = self.engine.class();
        let mut command = Command::new(&self.installation.python);
        self.set_environment(&mut command);
        command.args(["-m", self.engine.module()]);
        if self.engine == Engine::JupyterHub {
            let mut variables = DIRECTORIES.map(|(name, _)| name).to_vec();
            variables.extend(["JUPYTER_PATH", "JUPYTER_NO_CONFIG"]);
            hub::configure(self, &mut command, &variables);
            return command;
        }
        let mut option = |name: &str, value: &str| {
            command.arg(format!("--{class}.{name}={value}"));
        };
        option("ip", "127.0.0.1");
        option("port", &self.port.to_string());
        option("port_retries", "0");
        if let Some(path) = &self.options.base_path {
            option("base_url", path);
        }
        if let Some(tls) = &self.options.tls {
            let identity = tls.authority.server(&["localhost", "127.0.0.1"]);
            let (certificate, key) = identity.write_to(self.directory.path(), "server");
            option("certfile", &certificate.to_string_lossy());
            option("keyfile", &key.to_string_lossy());
            if tls.requires_client {
                let path = tls.authority.write_to(self.directory.path());
                option("client_ca", &path.to_string_lossy());
            }
        }
        match self.engine {
            Engine::KernelGateway => {
                command.arg("--JupyterWebsocketPersonality.list_kernels=True");
            }
            Engine::EnterpriseGateway | Engine::EnterpriseGatewayDistributed => {
                option("list_kernels", "True");
            }
            Engine::JupyterServer => {
                option("allow_root", "True");
                option("open_browser", "False");
            }
            Engine::JupyterHub => {}
        }
        command.args(&self.options.arguments);
        command
    }

    /// Sets directories that no other server and no user has.
    fn set_environment(&self, command: &mut Command) {
        let directory = self.directory.path();
        command.env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        for (name, part) in DIRECTORIES {
            command.env(name, directory.join(part));
        }
        command
            .env("LANG", "C.UTF-8")
            // Kernelspecs there have precedence over those of the installation.
            .env("JUPYTER_PATH", directory.join("data"))
            // The extensions of JupyterLab that are in the same environment would only cost time.
            .env("JUPYTER_NO_CONFIG", "1");
        if matches!(
            self.engine,
            Engine::EnterpriseGateway | Engine::EnterpriseGatewayDistributed
        ) {
            distributed::set_environment(command, directory);
        }
        if self.options.password.is_none()
            && let Some(name) = self.engine.token_variable()
        {
            command.env(name, &self.token);
        }
        for (name, value) in &self.options.environment {
            command.env(name, value);
        }
    }
}

impl Drop for GatewayServer {
    fn drop(&mut self) {
        self.kill_child();
        processes::end_all(self.directory.path());
    }
}

/// A port of loopback that nothing listens on, below those that the system gives to outgoing connections: so that it
/// stays free while a server restarts.
fn free_port() -> u16 {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let port = 15_000 + u16::try_from(random % 17_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A random word of 32 hexadecimal digits.
fn random_text() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}
