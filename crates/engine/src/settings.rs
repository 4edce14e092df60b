//! [`Settings`]: the value of every setting and where it comes from. Sources, in increasing precedence: built-in
//! defaults, the user's file, the project's file, environment variables. The front ends apply command-line flags.

mod definitions;
mod error;
mod failure;
mod file;
mod notices;
mod origin;
pub mod paths;
mod servers;
mod value;
mod value_kind;

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_diagnostics::notice::UserNotice;
use cellwright_output::{Limits, Retention};
use cellwright_stdext::private::ForeignPath;

pub use cellwright_kernel::Backend;
pub use definitions::{SETTINGS, SettingDef, SettingValues};
pub use error::SettingsError;
pub use failure::eval_disabled;
pub use notices::{describe_capped_timeout, describe_ignored, describe_ignored_setting};
pub use origin::{FileLine, Origin};
pub use servers::{SERVER_KEYS, ServerKey, ServerSettings};
pub use value::Value;

use crate::environment::{EnvironmentRequest, EnvironmentRules};
use cellwright_notebook::Position;
use definitions::ProjectPolicy;
use servers::FileServer;

/// Returns whether the user trusts the project's file with this content.
pub type IsTrusted<'a> = &'a dyn Fn(&Path, &[u8]) -> bool;

/// Where settings come from.
pub struct SettingsSources<'a> {
    /// The user's file, which need not exist; `None` without a configuration directory.
    pub user_file: Option<PathBuf>,
    /// The project's file, if it exists.
    pub project_file: Option<PathBuf>,
    /// Returns the value of an environment variable, if it is set.
    pub read_variable: &'a dyn Fn(&str) -> Option<OsString>,
    pub is_trusted: IsTrusted<'a>,
}

/// The settings of one working directory. Values are fields, by table: `settings.eval.timeout`.
#[derive(Clone, Debug)]
pub struct Settings {
    values: SettingValues,
    entries: Vec<SettingEntry>,
    servers: Vec<ServerSettings>,
    /// The servers that an untrusted project defines.
    ignored_servers: Vec<(String, FileLine)>,
    /// The servers of a trusted project that the user's file defines as well.
    replaced_servers: Vec<(String, FileLine)>,
    /// The environment that the caller requests for kernels.
    environment: EnvironmentRequest,
    /// Files and directories that do not count, because of their owner.
    foreign: Vec<ForeignPath>,
}

/// One setting: its definition, its value and where the value comes from.
#[derive(Clone, Debug)]
pub struct SettingEntry {
    pub definition: &'static SettingDef,
    pub value: Value,
    pub origin: Origin,
    /// Where an untrusted project sets it; that value is ignored.
    pub ignored_at: Option<FileLine>,
}

impl Deref for Settings {
    type Target = SettingValues;

    fn deref(&self) -> &SettingValues {
        &self.values
    }
}

impl Default for Settings {
    /// The built-in defaults.
    fn default() -> Self {
        Self::new(SettingsSource {
            entries: defaults(),
            ..SettingsSource::default()
        })
    }
}

impl Settings {
    /// Reads all sources.
    pub fn load(sources: &SettingsSources<'_>) -> Result<Self, SettingsError> {
        let mut found = SettingsSource {
            entries: defaults(),
            ..SettingsSource::default()
        };
        if let Some(file) = &sources.user_file {
            apply_user_file(file, &mut found)?;
        }
        if let Some(file) = &sources.project_file {
            apply_project_file(file, sources.is_trusted, &mut found)?;
        }
        apply_variables(sources.read_variable, &mut found.entries)?;
        Ok(Self::new(found))
    }

    fn new(found: SettingsSource) -> Self {
        let entries = found.entries;
        let values = SettingValues::collect(|name| {
            let entry = entries.iter().find(|entry| entry.definition.name == name);
            entry.map(|entry| entry.value.clone()).unwrap_or_default()
        });
        Self {
            values,
            entries,
            servers: found.servers,
            ignored_servers: found.ignored_servers,
            replaced_servers: found.replaced_servers,
            environment: EnvironmentRequest::default(),
            foreign: Vec::new(),
        }
    }

    /// The servers, by name.
    pub fn servers(&self) -> &[ServerSettings] {
        &self.servers
    }

    /// The same settings, with the files and directories that were found and do not count.
    #[must_use]
    pub fn with_foreign_paths(self, foreign: Vec<ForeignPath>) -> Self {
        Self { foreign, ..self }
    }

    /// Notices about settings of a project that are ignored, and about files and directories that do not count.
    pub fn notices(&self) -> Vec<UserNotice> {
        let foreign = notices::describe_foreign_paths(&self.foreign);
        let ignored = notices::describe_ignored(self);
        foreign.into_iter().chain(ignored).collect()
    }

    /// All settings, in the order of their definitions.
    pub fn entries(&self) -> &[SettingEntry] {
        &self.entries
    }

    /// Where the value of a setting comes from.
    pub fn origin(&self, name: &str) -> &Origin {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.definition.name == name);
        entry.map_or(&Origin::Default, |entry| &entry.origin)
    }

    /// Turns the prelude off unless a source sets it. Jupyter has no prelude: a notebook that uses it by mistake
    /// would run only in Cellwright.
    pub fn disable_prelude_unless_set(&mut self) {
        if *self.origin("kernel.prelude") == Origin::Default {
            self.values.kernel.prelude = false;
        }
    }

    /// Sets the time limit of the start of a kernel for this call.
    pub fn set_start_timeout(&mut self, timeout: Duration) {
        self.values.kernel.start_timeout = timeout;
    }

    /// Sets the environment that the caller requests for kernels.
    pub fn request_environment(&mut self, request: EnvironmentRequest) {
        self.environment = request;
    }

    /// Which environment variables a kernel receives.
    pub fn environment_rules(&self) -> EnvironmentRules {
        EnvironmentRules {
            policy: self.environment.policy,
            requested: self.environment.variables.clone(),
            pass: self.env.pass.clone(),
            deny: self.env.deny.clone(),
            set: self.env.set.clone().into_iter().collect(),
        }
    }

    /// How many bytes of artifacts are kept, and for how long.
    pub fn retention(&self) -> Retention {
        Retention {
            bytes: self.artifacts.max_bytes,
            age: self.artifacts.max_age,
        }
    }

    /// How much of an output is shown inline.
    pub fn output_limits(&self) -> Limits {
        Limits {
            inline_bytes: self.output.head.saturating_add(self.output.tail),
            head_bytes: self.output.head,
            line_bytes: self.output.line,
            ..Limits::default()
        }
    }
}

fn defaults() -> Vec<SettingEntry> {
    SETTINGS
        .iter()
        .map(|definition| SettingEntry {
            definition,
            value: definition.default(),
            origin: Origin::Default,
            ignored_at: None,
        })
        .collect()
}

/// What the sources contain so far.
#[derive(Default)]
struct SettingsSource {
    entries: Vec<SettingEntry>,
    servers: Vec<ServerSettings>,
    ignored_servers: Vec<(String, FileLine)>,
    replaced_servers: Vec<(String, FileLine)>,
}

fn apply_user_file(file: &Path, found: &mut SettingsSource) -> Result<(), SettingsError> {
    let Some(text) = file::read(file)? else {
        return Ok(());
    };
    let content = file::parse(file, &text)?;
    let origin = |at: Position| {
        Origin::User(FileLine {
            file: file.to_owned(),
            line: at.line,
        })
    };
    for setting in content.settings {
        let origin = origin(setting.at);
        set_value(
            &mut found.entries,
            setting.definition,
            setting.value,
            origin,
        );
    }
    for server in content.servers {
        let origin = origin(server.at);
        found.servers.push(ServerSettings::new(server, origin));
    }
    Ok(())
}

fn apply_project_file(
    file: &Path,
    is_trusted: IsTrusted<'_>,
    found: &mut SettingsSource,
) -> Result<(), SettingsError> {
    let Some(text) = file::read(file)? else {
        return Ok(());
    };
    let content = file::parse(file, &text)?;
    // Compared with the value of the user: a file that sets a limit twice cannot raise it step by step.
    let user_values = found.entries.clone();
    let needs_trust = |definition: &SettingDef, value: &Value| {
        let entry = user_values
            .iter()
            .find(|entry| entry.definition.name == definition.name);
        let policy = definition.project_policy;
        !entry.is_some_and(|entry| policy.allows_untrusted(value, &entry.value))
    };
    // Checked only if a setting needs it: the check reads the trust record.
    let mut settings = content.settings.iter();
    let trusted = (!content.servers.is_empty()
        || settings.any(|setting| needs_trust(setting.definition, &setting.value)))
        && is_trusted(file, text.as_bytes());
    for setting in content.settings {
        let definition = setting.definition;
        let line = FileLine {
            file: file.to_owned(),
            line: setting.at.line,
        };
        if matches!(
            definition.project_policy,
            ProjectPolicy::Secret | ProjectPolicy::User
        ) {
            return Err(SettingsError::NotForProjects {
                file: file.to_owned(),
                at: setting.at,
                key: definition.name.to_owned(),
            });
        }
        if !trusted && needs_trust(definition, &setting.value) {
            for entry in &mut found.entries {
                if entry.definition.name == definition.name {
                    entry.ignored_at = Some(line.clone());
                }
            }
            continue;
        }
        let value = match setting.value {
            Value::Path(path) => Value::Path(resolve_project_path(file, path)),
            other => other,
        };
        set_value(&mut found.entries, definition, value, Origin::Project(line));
    }
    for server in content.servers {
        apply_project_server(file, server, trusted, found)?;
    }
    Ok(())
}

/// Adds a server that a project defines. The user's server of that name stays: the project must not redirect code and
/// credentials.
fn apply_project_server(
    file: &Path,
    mut server: FileServer,
    trusted: bool,
    found: &mut SettingsSource,
) -> Result<(), SettingsError> {
    let mut values = server.values.iter();
    if let Some((key, _, at)) = values.find(|(key, ..)| key.is_for_users_only()) {
        return Err(SettingsError::NotForProjects {
            file: file.to_owned(),
            at: *at,
            key: format!("server.{}.{}", server.name, key.name),
        });
    }
    let line = FileLine {
        file: file.to_owned(),
        line: server.at.line,
    };
    if !trusted {
        found.ignored_servers.push((server.name, line));
        return Ok(());
    }
    let mut known = found.servers.iter();
    if known.any(|other| other.name == server.name) {
        found.replaced_servers.push((server.name, line));
        return Ok(());
    }
    for (_, value, _) in &mut server.values {
        if let Value::Path(path) = value {
            *path = resolve_project_path(file, std::mem::take(path));
        }
    }
    let server = ServerSettings::new(server, Origin::Project(line));
    found.servers.push(server);
    Ok(())
}

/// Resolves a path of a project's file against the project's root. A bare name without such a file is a command.
fn resolve_project_path(file: &Path, path: PathBuf) -> PathBuf {
    let joined = paths::project_root(file).join(&path);
    let bare = path.components().count() == 1;
    if path.starts_with("~") || (bare && !joined.exists()) {
        return path;
    }
    joined
}

fn apply_variables(
    variable: &dyn Fn(&str) -> Option<OsString>,
    entries: &mut [SettingEntry],
) -> Result<(), SettingsError> {
    for entry in entries {
        let definition = entry.definition;
        let env_name = definition.env_name();
        let first = std::iter::once(env_name.as_str())
            .chain(definition.env_aliases.iter().copied())
            .find_map(|name| Some((name.to_owned(), variable(name)?)));
        let Some((name, text)) = first else {
            continue;
        };
        let value = definition.kind.parse_text(&text);
        entry.value = value.ok_or_else(|| SettingsError::BadVariable {
            variable: name.clone(),
            key: definition.name,
            expected: definition.kind.expected_in_variable(),
        })?;
        entry.origin = Origin::Variable(name);
    }
    Ok(())
}

fn set_value(entries: &mut [SettingEntry], definition: &SettingDef, value: Value, origin: Origin) {
    for entry in entries {
        if entry.definition.name == definition.name {
            entry.value = value;
            entry.origin = origin;
            return;
        }
    }
}

/// Parses the text of a settings file. Returns the number of settings, or the failure that users see.
#[cfg(feature = "fuzz")]
pub fn parse_text(text: &str) -> Result<usize, cellwright_diagnostics::failure::Failure> {
    let settings = file::parse(Path::new("config.toml"), text)?.settings;
    for setting in &settings {
        let lines = text.split('\n').count();
        assert!((1..=lines).contains(&setting.at.line));
    }
    Ok(settings.len())
}

#[cfg(test)]
mod tests;
