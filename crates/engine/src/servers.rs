//! The Jupyter server that a command uses: by the name of its settings, by its URL, or by the variables of Jupyter.

mod credentials;
mod variables;

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind, command, flag, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_diagnostics::suggest::nearest;
use cellwright_gateway::{
    Credentials, PastedUrl, ProxyOptions, Secret, Server, ServerUrl, TOKEN_SCHEME, TlsOptions,
};
use cellwright_kernel::backend::jupyter::gateway::FileAccess;

use crate::env;
use crate::settings::{Origin, ServerSettings, Settings};

/// The server that a caller names: the name of a table `[server.NAME]`, or a URL, which may contain a token.
pub type ServerChoice = Secret;

/// A server, and how its kernels are started.
#[derive(Clone, Debug)]
pub struct ResolvedServer {
    /// How to reach it.
    pub server: Server,
    /// The kernelspec to start if none is named.
    pub kernel: Option<String>,
    /// Whether its kernels have the files of this machine.
    pub files: FileAccess,
    /// Names of variables to pass to its kernels.
    pub env: Vec<String>,
    /// What the caller should know.
    pub notices: Vec<UserNotice>,
}

/// Returns the server of a caller's choice.
pub fn resolve(settings: &Settings, choice: &ServerChoice) -> Result<ResolvedServer, Failure> {
    let text = choice.text().trim();
    if !text.contains("://") {
        return resolve_named(settings, text);
    }
    let pasted =
        PastedUrl::parse(text).map_err(|error| bad_url("The URL of the server", &error))?;
    let mut resolved = resolve_url(settings, &pasted)?;
    if pasted.token.is_some() {
        resolved.notices.push(credential_notice(
            "the token in the URL is visible to other users in the list of processes; put it into a file and name the \
             file as `token_file` of a table `[server.NAME]` in your settings, or set CELLWRIGHT_GATEWAY_TOKEN",
        ));
    }
    Ok(resolved)
}

/// Returns the server of the settings. `None`: they name none.
pub fn resolve_default(settings: &Settings) -> Result<Option<ResolvedServer>, Failure> {
    if let Some(name) = &settings.gateway.server {
        let origin = settings.origin("gateway.server");
        let resolved = resolve_named(settings, name);
        return resolved
            .map(Some)
            .map_err(|failure| failure.hint(format!("`gateway.server` comes from {origin}")));
    }
    let Some(url) = &settings.gateway.url else {
        return Ok(None);
    };
    let pasted = PastedUrl::parse(url).map_err(|error| {
        let origin = settings.origin("gateway.url");
        bad_url("`gateway.url`", &error).hint(format!("it comes from {origin}"))
    })?;
    resolve_url(settings, &pasted).map(Some)
}

/// Returns the server of a table `[server.NAME]`.
pub fn resolve_named(settings: &Settings, name: &str) -> Result<ResolvedServer, Failure> {
    let mut servers = settings.servers().iter();
    let Some(found) = servers.find(|server| server.name == name) else {
        return Err(unknown_server(settings, name));
    };
    from_settings(found)
}

/// The names of all servers that the settings define.
pub fn names(settings: &Settings) -> Vec<&str> {
    let servers = settings.servers().iter();
    servers.map(|server| server.name.as_str()).collect()
}

fn unknown_server(settings: &Settings, name: &str) -> Failure {
    let names = names(settings);
    let failure = Failure::new(
        Kind::BadArguments,
        format!("There is no server named `{name}`"),
    );
    let failure = match nearest(name, names.iter().copied()) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None if names.is_empty() => failure,
        None => failure.hint(format!("existing names: {}", names.join(", "))),
    };
    failure.hint(hint![
        format!("define it as a table `[server.{name}]` with a `url` in your settings ("),
        command("config path"),
        " names the file), or give its URL",
    ])
}

fn bad_url(what: &str, error: &cellwright_gateway::BadUrl) -> Failure {
    // The text may contain a token: it is not repeated.
    let mut failure = Failure::new(Kind::BadArguments, format!("{what} is not usable"));
    failure.causes.push(error.to_string());
    failure.hint(hint![
        flag("gateway"),
        " takes the name of a server in the settings, or a URL such as `http://127.0.0.1:8888/`",
    ])
}

pub(crate) fn credential_notice(text: impl Into<String>) -> UserNotice {
    UserNotice::new(NoticeKind::ServerCredentials, text.into())
}

fn from_settings(found: &ServerSettings) -> Result<ResolvedServer, Failure> {
    let name = &found.name;
    let url = found.text("url").unwrap_or_default();
    let pasted = PastedUrl::parse(url).map_err(|error| {
        bad_url(&format!("The URL of the server `{name}`"), &error)
            .hint(format!("it comes from {}", found.origin))
    })?;
    let path = |key: &str| {
        found
            .path(key)
            .map(|path| resolve_path(&path, &found.origin))
    };
    let mut notices = Vec::new();
    let mut server = Server::new(pasted.url);
    server.name = Some(name.clone());
    server.credentials = credentials::from_settings(found, pasted.token, &mut notices)?;
    server.headers = credentials::headers(found, &mut notices)?;
    server.tls = TlsOptions {
        ca: path("ca"),
        client_cert: path("client_cert"),
        client_key: path("client_key"),
    };
    server.proxy = match found.text("proxy") {
        None => variables::proxy(),
        Some("none") => ProxyOptions::default(),
        Some(url) => ProxyOptions {
            http: Some(url.to_owned()),
            https: Some(url.to_owned()),
            no_proxy: None,
        },
    };
    if let Some(timeout) = found.request_timeout() {
        server.request_timeout = timeout;
    }
    Ok(ResolvedServer {
        server,
        kernel: found.text("kernel").map(str::to_owned),
        files: if found.has_local_files() {
            FileAccess::ThisMachine
        } else {
            FileAccess::OtherMachine
        },
        env: found.list("env").to_vec(),
        notices,
    })
}

/// A server by its URL. Its settings are those of a table with the same URL, else the variables of Jupyter, if they are for
/// the same server.
fn resolve_url(settings: &Settings, pasted: &PastedUrl) -> Result<ResolvedServer, Failure> {
    let is_same = |server: &&ServerSettings| {
        let url = server
            .text("url")
            .and_then(|url| PastedUrl::parse(url).ok());
        url.is_some_and(|known| known.url == pasted.url)
    };
    let mut resolved = match settings.servers().iter().find(is_same) {
        Some(found) => from_settings(found)?,
        None => from_variables(settings, &pasted.url)?,
    };
    if let Some(token) = &pasted.token {
        let scheme = match &resolved.server.credentials {
            Credentials::Token { scheme, .. } => scheme.clone(),
            Credentials::None | Credentials::Password(_) => TOKEN_SCHEME.to_owned(),
        };
        resolved.server.credentials = Credentials::Token {
            token: token.clone(),
            scheme,
        };
    }
    Ok(resolved)
}

/// A server without a table: `gateway.token` and the variables of Jupyter apply unless they are for another server.
fn from_variables(settings: &Settings, url: &ServerUrl) -> Result<ResolvedServer, Failure> {
    let mut notices = Vec::new();
    let mut server = Server::new(url.clone());
    server.proxy = variables::proxy();
    let mut env = Vec::new();
    let known = settings.gateway.url.as_deref().map(PastedUrl::parse);
    let is_configured = match &known {
        None => true,
        Some(known) => known.as_ref().is_ok_and(|known| known.url == *url),
    };
    if is_configured {
        let by_project = matches!(settings.origin("gateway.url"), Origin::Project(_));
        let token = settings.gateway.token.as_deref();
        if by_project && token.is_some() {
            notices.push(credential_notice(format!(
                "the token in `gateway.token` is not sent: the project's settings name the server {url}, and the token is yours"
            )));
        } else {
            let scheme = variables::auth_scheme();
            server.credentials = match token {
                Some(token) => Credentials::Token {
                    token: Secret::new(token),
                    scheme: scheme.unwrap_or_else(|| TOKEN_SCHEME.to_owned()),
                },
                None => Credentials::None,
            };
            variables::apply(&mut server, &mut env)?;
        }
    }
    Ok(ResolvedServer {
        server,
        kernel: None,
        files: FileAccess::OtherMachine,
        env,
        notices,
    })
}

/// A path of a settings file: `~` is the home directory, and a relative path starts at the directory of the file.
fn resolve_path(path: &Path, origin: &Origin) -> PathBuf {
    if let Ok(rest) = path.strip_prefix("~")
        && let Some(home) = env::value(env::HOME)
    {
        return PathBuf::from(home).join(rest);
    }
    match origin {
        Origin::User(at) => at.file.parent().unwrap_or(Path::new("")).join(path),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
