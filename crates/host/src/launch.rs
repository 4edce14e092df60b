//! Starts a host with a clean environment and waits until it is ready.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cellwright_engine::runtime_dir::RuntimeDir;
use cellwright_engine::{env, environment, program};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::error::HostError;
use super::host_main::{ALREADY_RUNNING_LINE, FAILED_LINE_PREFIX, HOST_ARG, READY_LINE};
use super::log;

/// Environment variables that a host receives.
const PASSED_VARIABLES: [&str; 8] = [
    "HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL",
];

/// Prefixes of further variables that a host receives, unless the name looks like a secret.
const PASSED_PREFIXES: [&str; 3] = ["LC_", "XDG_", "CELLWRIGHT_"];

/// Makes the allocator of glibc return memory. With its defaults, a host keeps three times its size after large
/// transfers. No other program reads these variables, and kernels do not receive them.
const ALLOCATOR: [(&str, &str); 2] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// Starts a host and waits until it is ready. Returns false if another host runs already.
pub(super) async fn launch(
    dir: &RuntimeDir,
    idle_exit: Option<Duration>,
    timeout: Duration,
) -> Result<bool, HostError> {
    let log = log::append_to(dir).map_err(HostError::file("open the log in", dir.path()))?;
    let idle_seconds = idle_exit.unwrap_or_default().as_secs_f64().to_string();
    let mut child = Command::new(program::current_program())
        .arg0("cellwright")
        .arg(HOST_ARG)
        .arg(dir.path())
        .arg(idle_seconds)
        .env_clear()
        .envs(environment(env::all()))
        .envs(ALLOCATOR)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(HostError::file("start a host in", dir.path()))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        let read = tokio::time::timeout(timeout, stdout.read_line(&mut line)).await;
        if read.is_err() {
            // It may hold the lock that the next host needs.
            child.start_kill().ok();
            return Err(HostError::NotReady { after: timeout });
        }
    }
    let reason = match line.trim_end() {
        READY_LINE => return Ok(true),
        ALREADY_RUNNING_LINE => return Ok(false),
        "" => match child.wait().await {
            Ok(status) => format!("it ended without a message ({status})"),
            Err(error) => error.to_string(),
        },
        line => line
            .strip_prefix(FAILED_LINE_PREFIX)
            .unwrap_or(line)
            .to_owned(),
    };
    Err(HostError::NotStarted { reason })
}

/// The part of the starter's environment that a host receives. Sessions bring their own environment.
fn environment(all: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    all.into_iter()
        .filter_map(|(name, value)| {
            let text = name.to_str()?;
            let passed = PASSED_VARIABLES.contains(&text)
                || PASSED_PREFIXES.iter().any(|start| text.starts_with(start));
            if !passed || environment::looks_secret(text) {
                return None;
            }
            // The host has another working directory.
            let is_dir =
                text == "TMPDIR" || text.starts_with("CELLWRIGHT_") && text.ends_with("_DIR");
            let value = if is_dir { absolute(&value) } else { value };
            Some((name, value))
        })
        .collect()
}

fn absolute(value: &OsStr) -> OsString {
    std::path::absolute(Path::new(value)).map_or_else(|_| value.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_receives_only_listed_variables() {
        let all = [
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("CELLWRIGHT_CACHE_DIR", "relative"),
            ("TMPDIR", "relative"),
            ("CELLWRIGHT_GATEWAY_TOKEN", "s"),
            ("XDG_SECRET", "s"),
            ("OPENAI_API_KEY", "s"),
            ("VIRTUAL_ENV", "/v"),
            ("LD_PRELOAD", "x"),
        ];
        let all = all.map(|(name, value)| (name.into(), value.into()));
        let seen = environment(all.to_vec());
        let names: Vec<&str> = seen.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, ["HOME", "LC_ALL", "CELLWRIGHT_CACHE_DIR", "TMPDIR"]);
        assert!(Path::new(&seen[2].1).is_absolute() && Path::new(&seen[3].1).is_absolute());
    }
}
