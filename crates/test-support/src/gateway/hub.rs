//! `JupyterHub`: the hub, its proxy, and the server of a user that the fixture spawns.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::request::{self, Target};
use super::{GatewayServer, POLL_INTERVAL, START_TIMEOUT, free_port, processes};

const USER: &str = "alice";
const CONFIGURATION: &str = include_str!("hub_config.py");

/// What the fixture knows about a running hub.
pub(super) struct Hub {
    /// The token of the fixture, which may manage users.
    token: String,
    /// The process of the user's server; 0 while it has none.
    pub(super) server_pid: u32,
}

/// The path of the user's server below the base path of the hub.
pub(super) fn user_path() -> String {
    format!("user/{USER}/")
}

/// Sets what the hub reads at its start. `variables` are those of the environment that the user's server receives too.
pub(super) fn configure(server: &GatewayServer, command: &mut Command, variables: &[&str]) {
    let directory = server.directory();
    let values = json!({
        "directory": directory,
        "port": server.port,
        "hub_port": free_port(),
        "proxy_port": free_port(),
        "base_path": server.options.base_path.as_deref().unwrap_or("/"),
        "proxy": server.installation.hub_proxy,
        "token": server.hub.token,
        "arguments": server.options.arguments,
        "variables": variables,
    });
    let path = directory.join("hub.json");
    fs::write(&path, values.to_string()).unwrap();
    let configuration = directory.join("hub_config.py");
    fs::write(&configuration, CONFIGURATION).unwrap();
    command.env("CELLWRIGHT_TEST_HUB", path);
    command.arg("--config").arg(configuration);
}

impl Hub {
    pub(super) fn new(token: String) -> Self {
        Self {
            token,
            server_pid: 0,
        }
    }

    fn send(&self, server: &GatewayServer, method: &str, path: &str, body: &str) -> (u16, Value) {
        let base = server.options.base_path.as_deref().unwrap_or("/");
        let target = Target {
            address: server.address(),
            tls: None,
            token: Some(self.token.clone()),
        };
        let path = format!("{base}hub/api/{path}");
        match request::send(&target, method, &path, body) {
            Ok((status, body)) => (status, serde_json::from_str(&body).unwrap_or_default()),
            Err(error) => (0, Value::String(error.to_string())),
        }
    }

    /// Whether the hub replies to its own token.
    pub(super) fn is_ready(&self, server: &GatewayServer) -> bool {
        self.send(server, "GET", "users", "").0 == 200
    }

    /// Creates the user and returns a token for it.
    pub(super) fn create_user(&self, server: &GatewayServer) -> String {
        let (status, reply) = self.send(server, "POST", &format!("users/{USER}"), "");
        assert!(matches!(status, 201 | 409), "{status} {reply}");
        let path = format!("users/{USER}/tokens");
        let (status, reply) = self.send(server, "POST", &path, "{\"note\": \"test\"}");
        assert_eq!(status, 201, "{reply}");
        reply["token"].as_str().unwrap().to_owned()
    }

    /// Spawns the user's server and waits until the hub has it. Returns its process.
    pub(super) fn spawn(&self, server: &GatewayServer) -> u32 {
        let start = Instant::now();
        loop {
            let path = format!("users/{USER}/server");
            let (status, reply) = self.send(server, "POST", &path, "");
            if matches!(status, 201 | 202) {
                break;
            }
            // The hub has not yet reaped a server that was killed.
            assert!(
                status == 400 && start.elapsed() < START_TIMEOUT,
                "{status} {reply}\n{}",
                server.log_tail()
            );
            std::thread::sleep(POLL_INTERVAL);
        }
        loop {
            let (_, user) = self.send(server, "GET", &format!("users/{USER}"), "");
            let spawned = &user["servers"][""];
            if spawned["ready"] == true {
                let pid = spawned["state"]["pid"].as_u64().unwrap();
                return u32::try_from(pid).unwrap();
            }
            assert!(
                start.elapsed() < START_TIMEOUT,
                "{user}\n{}",
                server.log_tail()
            );
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills the user's server and waits for its end. The hub reaps it later.
    pub(super) fn kill_server(&mut self, directory: &Path) {
        let pid = std::mem::take(&mut self.server_pid);
        if pid == 0 {
            return;
        }
        processes::kill(pid);
        while processes::processes_of(directory).contains(&pid) {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
