//! One call: runs a verb as a child process while the calling cell runs.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cellwright_stdext::private::temporary;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::{BridgeCommand, BridgeSession, RunningCell};
use crate::program;

/// Largest reply of a verb, in bytes.
const REPLY_LIMIT: u64 = 256 << 20;

/// A call of a verb.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeCall {
    /// The verb.
    pub(super) name: String,
    /// Named arguments.
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    /// Positional arguments, in the order of the command line.
    #[serde(default)]
    pub(super) positional: Vec<Value>,
    /// The kernel's working directory.
    cwd: Option<PathBuf>,
    /// The session of the caller. A call cannot name another session.
    session: Option<String>,
}

/// The reply to a call: a JSON document.
pub(super) struct BridgeReply(pub(super) Vec<u8>);

impl BridgeReply {
    fn from_json(value: &Value) -> Self {
        Self(value.to_string().into_bytes())
    }

    fn failed(error: impl Into<String>, kind: &str, exit_code: u8) -> Self {
        let error: String = error.into();
        Self::from_json(&json!({"ok": false, "error": error, "kind": kind, "exit_code": exit_code}))
    }
}

/// Executes a call. Replies with an error when the calling cell ends.
pub(super) async fn handle(session: &BridgeSession, call: BridgeCall) -> BridgeReply {
    let named = call.session.as_deref();
    if named.is_some_and(|named| named != session.context.session) {
        return BridgeReply::failed("the token is for another session", "bad_arguments", 2);
    }
    let Some(running) = session.running_cell.borrow().clone() else {
        return BridgeReply::failed("no cell of this session is running", "kernel", 2);
    };
    tokio::select! {
        biased;
        // Dropping the other branch kills the child.
        () = cell_ended(session, running) => BridgeReply::failed("the cell was stopped", "cancelled", 130),
        reply = execute(session, &call) => reply,
    }
}

/// Waits until the calling cell has ended or its stop is requested.
async fn cell_ended(session: &BridgeSession, running: RunningCell) {
    let mut cell = session.running_cell.subscribe();
    let over = cell.wait_for(|now| now.as_ref().is_none_or(|now| now.number != running.number));
    tokio::select! {
        _ = over => {}
        _ = running.stop.requested() => {}
    }
}

async fn execute(session: &BridgeSession, call: &BridgeCall) -> BridgeReply {
    let command = match (session.build_command)(&call.name, &call.args, &call.positional) {
        Ok(command) => command,
        Err(what) => return BridgeReply::failed(what, "bad_arguments", 2),
    };
    let Ok(_permit) = session.call_permits.acquire().await else {
        return BridgeReply::failed("the session is ending", "cancelled", 130);
    };
    match run_verb(session, call.cwd.as_deref(), &command).await {
        Ok(reply) => reply,
        Err(error) => BridgeReply::failed(
            format!("`{}` could not be run: {error}", call.name),
            "bad_file",
            2,
        ),
    }
}

async fn run_verb(
    session: &BridgeSession,
    cwd: Option<&Path>,
    command: &BridgeCommand,
) -> io::Result<BridgeReply> {
    let cwd = cwd.filter(|cwd| cwd.is_absolute() && cwd.is_dir());
    let stdin = match &command.stdin {
        Some(text) => {
            let text = text.clone();
            let file = tokio::task::spawn_blocking(move || unnamed_file(text.as_bytes())).await;
            Stdio::from(file??)
        }
        None => Stdio::null(),
    };
    let mut child = Command::new(program::current_program())
        .arg0("cellwright")
        .args(&command.arguments)
        .env_clear()
        .envs(
            session
                .context
                .env
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .current_dir(cwd.unwrap_or(&session.context.cwd))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // A Ctrl-C on the terminal is for the cell. When the cell ends, this child is killed.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(REPLY_LIMIT + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > REPLY_LIMIT {
        return Ok(BridgeReply::failed(
            "the reply is larger than 256 MiB",
            "bad_arguments",
            2,
        ));
    }
    let status = child.wait().await?;
    Ok(parse_reply(&bytes, status.code()))
}

/// Converts the output and the exit code of a verb into a reply.
fn parse_reply(bytes: &[u8], code: Option<i32>) -> BridgeReply {
    let Ok(text) = serde_json::from_slice::<&RawValue>(bytes) else {
        let status = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
        return BridgeReply::failed(
            format!("the verb ended with {status} and without a reply"),
            "bug",
            70,
        );
    };
    if code != Some(0)
        && let Ok(document) = serde_json::from_slice::<Value>(bytes)
        && let Some(error) = document.get("error").filter(|error| error.is_object())
    {
        return BridgeReply::from_json(&json!({
            "ok": false,
            "error": error["message"],
            "kind": error["kind"],
            "exit_code": error["exit_code"],
            "causes": error["causes"],
            "hints": error["hints"],
        }));
    }
    BridgeReply(format!("{{\"ok\":true,\"value\":{}}}", text.get()).into_bytes())
}

/// Returns an unnamed file with this text, as the standard input of a verb. Not a pipe: if this process is killed, the
/// verb must not take half of the text for all of it.
fn unnamed_file(text: &[u8]) -> io::Result<File> {
    let mut file = temporary::create_file()?;
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}
