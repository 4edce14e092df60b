//! Credentials of a server: tokens, passwords and headers, from settings, files and commands. No error contains one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_gateway::{Credentials, Secret, TOKEN_SCHEME};
use cellwright_stdext::regular_file::{self, Links};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::{credential_notice, resolve_path};
use crate::env;
use crate::runtime;
use crate::settings::ServerSettings;

/// The largest file, or output of a command, that is read as a secret.
const SECRET_LIMIT: u64 = 64 << 10;

/// How long a command may take to print a token.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The credentials of a server; `in_url` is the token in its URL.
pub(super) fn from_settings(
    found: &ServerSettings,
    in_url: Option<Secret>,
    notices: &mut Vec<UserNotice>,
) -> Result<Credentials, Failure> {
    let path = |key: &str| {
        found
            .path(key)
            .map(|path| resolve_path(&path, &found.origin))
    };
    let command = found.list("token_command");
    let token_file = path("token_file");
    let password_file = path("password_file");
    let sources: Vec<&str> = [
        ("token", found.text("token").is_some()),
        ("token_file", token_file.is_some()),
        ("token_command", !command.is_empty()),
        ("password_file", password_file.is_some()),
    ]
    .into_iter()
    .filter_map(|(key, is_set)| is_set.then_some(key))
    .collect();
    if let [one, other, ..] = sources[..] {
        let message = format!("The server `{}` has both `{one}` and `{other}`", found.name);
        let failure = Failure::new(Kind::BadSettings, message);
        return Err(failure.hint(format!("remove one of them in {}", found.origin)));
    }
    let token = if let Some(token) = found.text("token") {
        Some(Secret::new(token))
    } else if let Some(file) = token_file {
        Some(read_secret(&file, &found.name, "token", notices)?)
    } else if !command.is_empty() {
        Some(run_command(command, &found.name)?)
    } else if let Some(file) = password_file {
        let password = read_secret(&file, &found.name, "password", notices)?;
        return Ok(Credentials::Password(password));
    } else {
        in_url
    };
    Ok(match token {
        Some(token) => Credentials::Token {
            token,
            scheme: found.text("auth_scheme").unwrap_or(TOKEN_SCHEME).to_owned(),
        },
        None => Credentials::None,
    })
}

/// The headers of a server.
pub(super) fn headers(
    found: &ServerSettings,
    notices: &mut Vec<UserNotice>,
) -> Result<Vec<(String, Secret)>, Failure> {
    let mut headers: Vec<(String, Secret)> = found
        .table("headers")
        .into_iter()
        .map(|(name, value)| (name, Secret::new(value)))
        .collect();
    for (name, file) in found.table("header_files") {
        let file = resolve_path(Path::new(&file), &found.origin);
        let value = read_secret(&file, &found.name, &format!("header `{name}`"), notices)?;
        headers.push((name, value));
    }
    Ok(headers)
}

fn read_secret(
    file: &Path,
    server: &str,
    what: &str,
    notices: &mut Vec<UserNotice>,
) -> Result<Secret, Failure> {
    let unusable = |cause: String| {
        let message = format!(
            "The {what} of the server `{server}` cannot be read from {}",
            file.display()
        );
        let mut failure = Failure::new(Kind::BadSettings, message);
        failure.causes.push(cause);
        failure
    };
    let bytes = regular_file::read(file, Links::Follow, SECRET_LIMIT)
        .map_err(|error| unusable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable("it is not text".to_owned()))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(unusable("it is empty".to_owned()));
    }
    // Group and others.
    if file
        .metadata()
        .is_ok_and(|metadata| metadata.mode() & 0o077 != 0)
    {
        notices.push(credential_notice(format!(
            "other users of this machine may read {} with the {what} of the server `{server}`; `chmod 600` protects it",
            file.display()
        )));
    }
    Ok(Secret::new(text))
}

/// Runs a command that prints a token. Its messages are not shown: they may contain a secret.
fn run_command(words: &[String], server: &str) -> Result<Secret, Failure> {
    let failed = |cause: String| {
        let message = format!("The `token_command` of the server `{server}` failed");
        let mut failure = Failure::new(Kind::BadSettings, message);
        failure.causes.push(cause);
        failure.hint("run it in a terminal: it must print the token and nothing else")
    };
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| failed("it is empty".to_owned()))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(env::all())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = async move {
        let mut child = command.spawn()?;
        let mut text = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(SECRET_LIMIT).read_to_end(&mut text).await?;
        }
        Ok::<_, std::io::Error>((child.wait().await?, text))
    };
    let limited = async { timeout(COMMAND_TIMEOUT, output).await };
    let (status, text) = match runtime::block_on(limited)? {
        Err(_) => {
            let seconds = COMMAND_TIMEOUT.as_secs();
            return Err(failed(format!("it did not end within {seconds} s")));
        }
        Ok(Err(error)) => return Err(failed(format!("{program}: {error}"))),
        Ok(Ok(output)) => output,
    };
    if !status.success() {
        return Err(failed(status.to_string()));
    }
    let text = String::from_utf8(text).map_err(|_| failed("it printed no text".to_owned()))?;
    match text.trim() {
        "" => Err(failed("it printed nothing".to_owned())),
        token => Ok(Secret::new(token)),
    }
}
