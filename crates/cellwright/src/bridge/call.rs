//! One call: a verb as a process of its own, as long as the cell that asked for it runs.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::command::{self, Line};
use super::{Guest, Running};
use crate::kernels;

/// Most that a verb may answer.
const MAX_ANSWER: u64 = 256 << 20;

/// What is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    /// The verb.
    pub(super) name: String,
    /// Its arguments by name.
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    /// Its arguments by position, as on the command line.
    #[serde(default)]
    pub(super) positional: Vec<Value>,
    /// Where the kernel is.
    cwd: Option<PathBuf>,
    /// Whom it thinks it is; others' sessions cannot be named.
    session: Option<String>,
}

/// The answer, as JSON.
pub(super) struct Answer(pub(super) Vec<u8>);

impl Answer {
    fn of(value: &Value) -> Self {
        Self(value.to_string().into_bytes())
    }

    fn failed(error: impl Into<String>, kind: &str, exit_code: u8) -> Self {
        let error: String = error.into();
        Self::of(&json!({"ok": false, "error": error, "kind": kind, "exit_code": exit_code}))
    }
}

/// Carries out a call.
pub(super) async fn answer(guest: &Guest, call: Call) -> Answer {
    let other = call.session.as_deref();
    if other.is_some_and(|other| other != guest.door.session) {
        return Answer::failed("the token is for another session", "bad_arguments", 2);
    }
    let Some(running) = guest.cell.borrow().clone() else {
        return Answer::failed("no cell of this session is running", "kernel", 2);
    };
    tokio::select! {
        biased;
        // The child goes with the other branch.
        () = ended(guest, running) => Answer::failed("the cell was stopped", "cancelled", 130),
        answer = carried_out(guest, &call) => answer,
    }
}

/// Waits until the cell that asked is over, or must end.
async fn ended(guest: &Guest, running: Running) {
    let mut cell = guest.cell.subscribe();
    let over = cell.wait_for(|now| now.as_ref().is_none_or(|now| now.number != running.number));
    tokio::select! {
        _ = over => {}
        _ = running.stop.pulled() => {}
    }
}

async fn carried_out(guest: &Guest, call: &Call) -> Answer {
    let line = match command::line(&call.name, &call.args, &call.positional) {
        Ok(line) => line,
        Err(what) => return Answer::failed(what, "bad_arguments", 2),
    };
    let Ok(_room) = guest.room.acquire().await else {
        return Answer::failed("the session is ending", "cancelled", 130);
    };
    match ran(guest, call.cwd.as_deref(), &line).await {
        Ok(answer) => answer,
        Err(error) => Answer::failed(
            format!("{} could not be run: {error}", call.name),
            "bad_file",
            2,
        ),
    }
}

async fn ran(guest: &Guest, cwd: Option<&Path>, line: &Line) -> io::Result<Answer> {
    let cwd = cwd.filter(|cwd| cwd.is_absolute() && cwd.is_dir());
    let stdin = match &line.stdin {
        Some(text) => Stdio::from(held(text.as_bytes())?),
        None => Stdio::null(),
    };
    let mut child = Command::new(kernels::own_program())
        .arg0("cellwright")
        .args(&line.arguments)
        .env_clear()
        .envs(guest.door.env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd.unwrap_or(&guest.door.cwd))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // A Ctrl-C on our terminal is for the cell, which then ends this.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_ANSWER + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > MAX_ANSWER {
        return Ok(Answer::failed(
            "the answer is larger than 256 MiB",
            "bad_arguments",
            2,
        ));
    }
    let status = child.wait().await?;
    Ok(read(&bytes, status.code()))
}

/// What a verb printed, as an answer.
fn read(bytes: &[u8], code: Option<i32>) -> Answer {
    let Ok(text) = serde_json::from_slice::<&RawValue>(bytes) else {
        let how = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
        return Answer::failed(
            format!("the verb ended with {how} and no answer"),
            "bug",
            70,
        );
    };
    if code != Some(0)
        && let Ok(document) = serde_json::from_slice::<Value>(bytes)
        && let Some(error) = document.get("error").filter(|error| error.is_object())
    {
        return Answer::of(&json!({
            "ok": false,
            "error": error["message"],
            "kind": error["kind"],
            "exit_code": error["exit_code"],
            "causes": error["causes"],
            "hints": error["hints"],
        }));
    }
    Answer(format!("{{\"ok\":true,\"value\":{}}}", text.get()).into_bytes())
}

/// Text as a file without a name, to be read as standard input. Not a pipe: should we be killed, the
/// verb would take half a text for the whole.
fn held(text: &[u8]) -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("cellwright-{}", super::random()?));
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}
