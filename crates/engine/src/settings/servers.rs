//! [`ServerSettings`]: the Jupyter servers that settings define, one table `[server.NAME]` for each.
//!
//! A server receives code and credentials. A project's file defines servers only if it is trusted, never their credentials,
//! and never a server with a name that the user's file defines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_notebook::Position;

use super::origin::Origin;
use super::value::Value;
use super::value_kind::ValueKind::{
    self, Choice, Command, Path, Seconds, Text, VariableNames, Variables,
};

/// The name of the table that contains the servers.
pub(super) const TABLE: &str = "server";

/// A key of a table `[server.NAME]`.
#[derive(Debug)]
pub struct ServerKey {
    /// The key.
    pub name: &'static str,
    pub(super) kind: ValueKind,
    policy: ServerKeyPolicy,
    /// What it does, as a sentence.
    pub meaning: &'static str,
}

/// Who may set a key of a server, and whether its value is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerKeyPolicy {
    /// The user, and a trusted project.
    Trusted,
    /// Only the user: the value names a credential, or a program.
    User,
    /// Only the user; the value is never printed.
    Secret,
}

use ServerKeyPolicy::{Secret, Trusted, User};

/// The values of the key `files`.
const FILES: &[&str] = &["remote", "local"];

/// Every key of a table `[server.NAME]`.
pub const SERVER_KEYS: &[ServerKey] = &[
    key(
        "url",
        Text,
        Trusted,
        "Address, with the base path; a token in it is used.",
    ),
    key("token", Text, Secret, "Token."),
    key("token_file", Path, User, "File with the token."),
    key(
        "token_command",
        Command,
        User,
        "Command that prints the token: a list of arguments, or a line for the shell.",
    ),
    key(
        "password_file",
        Path,
        User,
        "File with the password of the login page.",
    ),
    key(
        "auth_scheme",
        Text,
        Trusted,
        "Word before the token in the header Authorization: `token` (default) or `Bearer`.",
    ),
    key("headers", Variables, Secret, "Headers of every request."),
    key(
        "header_files",
        Variables,
        User,
        "Headers of every request whose values are in files: names and paths.",
    ),
    key(
        "ca",
        Path,
        Trusted,
        "PEM file with the certificate authorities to trust instead of those of the system.",
    ),
    key(
        "client_cert",
        Path,
        User,
        "PEM file with the certificate of the client.",
    ),
    key(
        "client_key",
        Path,
        User,
        "PEM file with the key of the client's certificate, if it is not in the same file.",
    ),
    key(
        "proxy",
        Text,
        User,
        "URL of the proxy, or `none`; by default HTTP_PROXY, HTTPS_PROXY and NO_PROXY apply.",
    ),
    key(
        "kernel",
        Text,
        Trusted,
        "Kernelspec to start if none is named.",
    ),
    key(
        "request_timeout",
        Seconds,
        Trusted,
        "Time limit of one request, in seconds (default 20).",
    ),
    key(
        "files",
        Choice(FILES),
        Trusted,
        "`local` if the server has the files of this machine at the same paths, else `remote` (default).",
    ),
    key(
        "env",
        VariableNames,
        User,
        "Environment variables to pass to kernels; servers ignore those that they do not allow.",
    ),
];

const fn key(
    name: &'static str,
    kind: ValueKind,
    policy: ServerKeyPolicy,
    meaning: &'static str,
) -> ServerKey {
    ServerKey {
        name,
        kind,
        policy,
        meaning,
    }
}

impl ServerKey {
    /// The value of the column `in a project`.
    pub fn project_label(&self) -> &'static str {
        match self.policy {
            Trusted => "trusted",
            User | Secret => "never",
        }
    }

    /// Whether a project's file must not contain it.
    pub(super) fn is_for_users_only(&self) -> bool {
        self.policy != Trusted
    }

    /// The value as it is shown, without credentials.
    pub fn shown(&self, value: &Value) -> Value {
        match self.policy {
            Secret => value.redacted(),
            Trusted | User => value.without_credentials(),
        }
    }
}

/// A server in a file.
pub(super) struct FileServer {
    pub(super) name: String,
    pub(super) at: Position,
    pub(super) values: Vec<(&'static ServerKey, Value, Position)>,
}

/// A server that settings define.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub origin: Origin,
    /// The keys that are set, in the order of [`SERVER_KEYS`].
    pub values: Vec<(&'static ServerKey, Value)>,
}

impl ServerSettings {
    pub(super) fn new(server: FileServer, origin: Origin) -> Self {
        let mut values = Vec::new();
        for key in SERVER_KEYS {
            let found = server
                .values
                .iter()
                .find(|(other, ..)| other.name == key.name);
            let value = found.map(|(_, value, _)| value.clone());
            values.extend(value.map(|value| (key, value)));
        }
        values.retain(|(_, value)| *value != Value::Unset);
        Self {
            name: server.name,
            origin,
            values,
        }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        let found = self.values.iter().find(|(key, _)| key.name == name);
        found.map(|(_, value)| value)
    }

    /// The text of a key.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The path of a key.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        match self.value(name)? {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    /// The list of a key.
    pub fn list(&self, name: &str) -> &[String] {
        match self.value(name) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    /// The table of a key.
    pub fn table(&self, name: &str) -> BTreeMap<String, String> {
        match self.value(name) {
            Some(Value::Table(table)) => table.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// The time limit of one request.
    pub fn request_timeout(&self) -> Option<Duration> {
        match self.value("request_timeout")? {
            Value::Seconds(time) => Some(*time).filter(|time| !time.is_zero()),
            _ => None,
        }
    }

    /// Whether the server has the files of this machine.
    pub fn has_local_files(&self) -> bool {
        self.text("files") == Some("local")
    }
}

/// Whether a server can have this name: it can be typed, and is not a URL.
pub(super) fn is_server_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= 64
        && name.chars().all(is_plain)
}
