//! `config`: prints the settings, their values and the origin of each value.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_diagnostics::json_schema::AnyJson;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_diagnostics::suggest::nearest;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels;
use cellwright_engine::settings::{
    FileLine, Origin, SETTINGS, ServerSettings, SettingDef, SettingEntry, Value,
    describe_ignored_setting,
};
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::console::Console;

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_help = "\
The value of a setting comes from a flag, an environment variable, the project's `.cellwright/config.toml`, the \
user's `config.toml`, or the default, in this order. `cellwright config path` lists the files. Settings that can \
cause code to run are used from a project only if the project is trusted (`cellwright trust`).

Examples:
  cellwright config list --long
  cellwright config get eval.timeout
  cellwright config path")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all settings with their values and the origin of each value
    #[command(after_help = "\
Examples:
  cellwright config list
  cellwright config list --json")]
    List {
        /// Also print the meaning of each setting
        #[arg(long)]
        long: bool,
        #[command(flatten)]
        project: ProjectArgs,
    },
    /// Print the value of a setting
    #[command(after_help = "\
Examples:
  cellwright config get eval.timeout
  cellwright config get python.interpreter --cwd project")]
    Get {
        /// Name of the setting, as in `eval.timeout`
        name: String,
        #[command(flatten)]
        project: ProjectArgs,
    },
    /// Print the settings files that are read
    #[command(after_help = "\
Examples:
  cellwright config path
  cellwright config path --cwd project --json")]
    Path {
        #[command(flatten)]
        project: ProjectArgs,
    },
}

#[derive(Debug, Args)]
struct ProjectArgs {
    /// Directory whose project settings apply [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// Prints settings.
pub(crate) fn config(args: &ConfigArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    match &args.action {
        Action::List { long, project } => list(*long, &project.dir()?, engine, console),
        Action::Get { name, project } => get(name, &project.dir()?, engine, console),
        Action::Path { project } => path(&project.dir()?, engine, console),
    }
}

impl ProjectArgs {
    fn dir(&self) -> Result<PathBuf, Failure> {
        kernels::working_directory(self.cwd.as_deref())
    }
}

fn list(long: bool, cwd: &Path, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let settings = engine.settings(cwd)?;
    let entries = settings.entries();
    if console.json {
        return console.print_json(&SettingList {
            settings: entries.iter().map(SettingDocument::new).collect(),
            servers: settings.servers().iter().map(ServerDocument::new).collect(),
            notices: settings.notices(),
        });
    }
    let rows: Vec<[String; 3]> = entries
        .iter()
        .map(|entry| {
            let name = entry.definition.name.to_owned();
            let value = match shown_value(entry).to_string() {
                empty if empty.is_empty() => "-".to_owned(),
                // Each setting is on one line.
                value => value.replace('\n', " "),
            };
            [name, value, entry.origin.to_string()]
        })
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        // Long values do not widen the column.
        widths.filter(|width| *width <= 40).max().unwrap_or(0)
    };
    let (names, values) = (width(0), width(1));
    let mut text = String::new();
    for ([name, value, origin], entry) in rows.iter().zip(entries) {
        text.push_str(&format!("{name:names$}  {value:values$}  {origin}\n"));
        if long {
            text.push_str(&format!("    {}\n", entry.definition.meaning()));
        }
    }
    for server in settings.servers() {
        for (key, value) in &server.values {
            let name = format!("server.{}.{}", server.name, key.name);
            let value = key.shown(value).to_string().replace('\n', " ");
            text.push_str(&format!(
                "{name:names$}  {value:values$}  {}\n",
                server.origin
            ));
            if long {
                text.push_str(&format!("    {}\n", key.meaning));
            }
        }
    }
    console.print(&text)?;
    console.print_notices(&settings.notices());
    Ok(())
}

fn get(name: &str, cwd: &Path, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let settings = engine.settings(cwd)?;
    let entry = settings
        .entries()
        .iter()
        .find(|entry| entry.definition.name == name)
        .ok_or_else(|| unknown_setting(name))?;
    if console.json {
        return console.print_json(&SettingDocument::new(entry));
    }
    let lines: Vec<String> = match shown_value(entry) {
        Value::Unset => Vec::new(),
        Value::List(items) => items,
        Value::Table(entries) => {
            let line = |(name, value)| format!("{name}={value}");
            entries.into_iter().map(line).collect()
        }
        value => vec![value.to_string()],
    };
    let mut text = lines.join("\n");
    if !lines.is_empty() {
        text.push('\n');
    }
    console.print(&text)?;
    console.print_notices(describe_ignored_setting(entry).as_slice());
    Ok(())
}

fn unknown_setting(name: &str) -> Failure {
    let failure = Failure::new(Kind::BadArguments, format!("Unknown setting `{name}`"));
    let names = || SETTINGS.iter().map(|definition| definition.name);
    let suggestion = nearest(name, names()).or_else(|| {
        let key = name.rsplit('.').next().unwrap_or(name);
        let key = nearest(key, SETTINGS.iter().map(SettingDef::key))?;
        names().find(|name| name.ends_with(&format!(".{key}")))
    });
    match suggestion {
        Some(suggestion) => failure.hint(format!("did you mean `{suggestion}`?")),
        None => failure.hint(hint![command("config list"), " lists all settings"]),
    }
}

fn path(cwd: &Path, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let files = engine.settings_files(cwd);
    let project = files.project.unwrap_or(files.project_default);
    if console.json {
        return console.print_json(&SettingFiles {
            user: files.user.as_deref().map(SettingsFile::new),
            project: SettingsFile::new(&project),
        });
    }
    let mut text = String::new();
    let user = files.user.as_deref().map(|file| ("user", file));
    for (owner, file) in user.into_iter().chain([("project", project.as_path())]) {
        let missing = if file.exists() { "" } else { "  (missing)" };
        text.push_str(&format!("{owner:7}  {}{missing}\n", file.display()));
    }
    console.print(&text)
}

/// The value; secrets, and credentials in URLs, are redacted.
fn shown_value(entry: &SettingEntry) -> Value {
    if entry.definition.is_secret() {
        entry.value.redacted()
    } else {
        entry.value.without_credentials()
    }
}

/// All settings.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingList {
    /// The settings.
    settings: Vec<SettingDocument>,
    /// The Jupyter servers, tables `[server.NAME]`.
    servers: Vec<ServerDocument>,
    /// What the caller should know although nothing failed.
    notices: Vec<UserNotice>,
}

/// A setting with its value.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Setting")]
pub(crate) struct SettingDocument {
    /// Name of the setting.
    name: &'static str,
    /// Value; durations are in seconds, sizes in bytes; secrets are redacted; `null` if it is not set.
    #[schemars(with = "AnyJson")]
    value: Json,
    /// Built-in default.
    #[schemars(with = "AnyJson")]
    default: Json,
    /// Where the value comes from.
    origin: OriginDocument,
    /// The line of the project's file that is ignored, because the project is not trusted.
    ignored: Option<FileLineDocument>,
    /// Whether a project may set it.
    project: &'static str,
    /// The environment variable that sets it.
    variable: String,
    /// Other environment variables that set it.
    variables: &'static [&'static str],
    /// Meaning of the setting.
    meaning: &'static str,
}

/// A Jupyter server of the settings.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerSetting")]
struct ServerDocument {
    /// Name of the server.
    name: String,
    /// The keys that are set, with their values; secrets are redacted.
    #[schemars(with = "AnyJson")]
    values: Json,
    /// Where it is defined.
    origin: OriginDocument,
}

impl ServerDocument {
    fn new(server: &ServerSettings) -> Self {
        let values = server.values.iter();
        let values = values.map(|(key, value)| (key.name.to_owned(), key.shown(value).to_json()));
        Self {
            name: server.name.clone(),
            values: Json::Object(values.collect()),
            origin: OriginDocument::new(&server.origin),
        }
    }
}

/// Where the value of a setting comes from.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(rename = "Origin")]
enum OriginDocument {
    /// The built-in default.
    Default,
    /// The user's file.
    User {
        #[serde(flatten)]
        at: FileLineDocument,
    },
    /// The project's file.
    Project {
        #[serde(flatten)]
        at: FileLineDocument,
    },
    /// An environment variable.
    Environment {
        /// Name of the variable.
        variable: String,
    },
    /// A flag of the command line.
    Flag {
        /// The flag.
        flag: &'static str,
    },
}

/// A line of a file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileLine")]
struct FileLineDocument {
    /// Path of the file.
    file: String,
    /// Number of the line, from 1.
    line: usize,
}

/// The files with settings.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingFiles {
    /// The user's file; `null` without a home directory.
    user: Option<SettingsFile>,
    /// The project's file.
    project: SettingsFile,
}

/// A file with settings.
#[derive(Serialize, JsonSchema)]
struct SettingsFile {
    /// Path of the file.
    file: String,
    /// Whether the file exists.
    exists: bool,
}

impl SettingsFile {
    fn new(file: &Path) -> Self {
        Self {
            file: file.to_string_lossy().into_owned(),
            exists: file.exists(),
        }
    }
}

impl From<&FileLine> for FileLineDocument {
    fn from(at: &FileLine) -> Self {
        Self {
            file: at.file.to_string_lossy().into_owned(),
            line: at.line,
        }
    }
}

impl OriginDocument {
    fn new(origin: &Origin) -> Self {
        match origin {
            Origin::Default => Self::Default,
            Origin::User(at) => Self::User { at: at.into() },
            Origin::Project(at) => Self::Project { at: at.into() },
            Origin::Variable(name) => Self::Environment {
                variable: name.clone(),
            },
            Origin::Flag(flag) => Self::Flag { flag },
        }
    }
}

impl SettingDocument {
    fn new(entry: &SettingEntry) -> Self {
        Self {
            name: entry.definition.name,
            value: shown_value(entry).to_json(),
            default: entry.definition.default().to_json(),
            origin: OriginDocument::new(&entry.origin),
            ignored: entry.ignored_at.as_ref().map(FileLineDocument::from),
            project: entry.definition.project_policy.label(),
            variable: entry.definition.env_name(),
            variables: entry.definition.env_aliases,
            meaning: entry.definition.meaning(),
        }
    }
}
