//! Approves the modules, the settings and the interpreter of a project, lists approved files, and withdraws the approval.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::{interpreter_search, working_directory};
use cellwright_engine::project_interpreter::{self, ProjectInterpreter};
use cellwright_engine::trust::{self, InterpreterTrust, Trust, TrustState};
use cellwright_kernel::modules;
use cellwright_kernel::python::{self, InterpreterSearch};
use cellwright_output::ByteSize;
use cellwright_stdext::private::{ForeignPath, OwnerRule};
use cellwright_stdext::regular_file::{self, Links};
use schemars::JsonSchema;
use serde::Serialize;

use crate::table::Table;

/// A request about trust. A path is that of a project or of one of its files; the default is the current directory.
#[derive(Debug)]
pub enum TrustRequest {
    Add { path: Option<PathBuf> },
    List,
    Remove { path: Option<PathBuf> },
}

/// The result of a request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustReport {
    /// What was done.
    pub action: TrustAction,
    /// The files.
    pub files: Vec<TrustedFile>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustAction {
    /// The files were trusted.
    Trust,
    /// The files were listed.
    List,
    /// The trust was withdrawn.
    Remove,
}

/// A file that is or was trusted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustedFile {
    /// Path of the file.
    pub path: String,
    /// Size in bytes when it was trusted.
    pub bytes: Option<u64>,
    /// State of the file.
    pub state: FileTrust,
}

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileTrust {
    /// Its content is trusted.
    Trusted,
    /// Its content differs from the trusted content.
    Changed,
    /// It cannot be read.
    Gone,
    /// The environment of a project is not trusted, but code ran with its interpreter.
    Used,
    /// The trust was withdrawn.
    Removed,
}

impl TrustReport {
    /// Columns: state, size, path.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["STATE", "SIZE", "PATH"])
            .without_head()
            .right("SIZE")
            .clip_path("PATH")
            .hide_first(&["SIZE"]);
        for file in &self.files {
            let state = match file.state {
                FileTrust::Trusted => "trusted",
                FileTrust::Changed => "changed",
                FileTrust::Gone => "gone",
                FileTrust::Used => "used",
                FileTrust::Removed => "removed",
            };
            let size = file.bytes.map(|bytes| ByteSize(bytes).to_string());
            table.push([
                state.to_owned(),
                size.unwrap_or_default(),
                file.path.clone(),
            ]);
        }
        table
    }
}

/// Carries out a request.
pub fn change_trust(request: &TrustRequest, engine: &Engine) -> Result<TrustReport, Failure> {
    let Some(state_dir) = engine.state_dir.as_deref() else {
        let message = "There is no directory for the list of trusted files";
        return Err(Failure::new(Kind::BadFile, message).hint("set HOME or CELLWRIGHT_STATE_DIR"));
    };
    match request {
        TrustRequest::List => list(state_dir),
        TrustRequest::Add { path } => add(engine, state_dir, &working_directory(path.as_deref())?),
        TrustRequest::Remove { path } => {
            remove(engine, state_dir, &working_directory(path.as_deref())?)
        }
    }
}

fn list(state_dir: &Path) -> Result<TrustReport, Failure> {
    let trust = Trust::read(Some(state_dir)).map_err(|error| store_failure(state_dir, &error))?;
    let files = trust.entries().map(|(path, entry)| TrustedFile {
        path: path.display().to_string(),
        bytes: Some(entry.bytes),
        state: match regular_file::read(path, Links::Follow, modules::MODULE_SIZE_LIMIT) {
            Err(_) => FileTrust::Gone,
            Ok(content) if trust.state(path, &content) == TrustState::Trusted => FileTrust::Trusted,
            Ok(_) => FileTrust::Changed,
        },
    });
    let interpreters = trust.interpreters().map(|(path, trust)| TrustedFile {
        path: path.display().to_string(),
        bytes: None,
        state: match trust {
            _ if !path.is_dir() => FileTrust::Gone,
            InterpreterTrust::Trusted => FileTrust::Trusted,
            InterpreterTrust::Used => FileTrust::Used,
        },
    });
    Ok(TrustReport {
        action: TrustAction::List,
        files: files.chain(interpreters).collect(),
        notices: Vec::new(),
    })
}

fn add(engine: &Engine, state_dir: &Path, path: &Path) -> Result<TrustReport, Failure> {
    refuse_foreign(engine, path)?;
    let mut unreadable = Vec::new();
    let mut selected = Vec::new();
    let named = named_environment(path);
    let files = if named.is_some() {
        Vec::new()
    } else {
        project_files(path, &engine.owner_rule(), &mut unreadable)?
    };
    // A file is trusted alone.
    let in_project = || {
        path.is_dir()
            .then(|| find_environment(engine, path))
            .flatten()
    };
    let environment = named.or_else(in_project);
    for file in files {
        match modules::read_source(&file) {
            Ok(content) => selected.push((trust::canonical_path(&file), content.into_bytes())),
            Err(reason) => unreadable.push((file, reason)),
        }
    }
    if selected.is_empty() && environment.is_none() {
        let message = format!("There is nothing to trust in {}", path.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        let causes = unreadable
            .iter()
            .map(|(path, reason)| format!("{}: {reason}", path.display()));
        failure.causes.extend(causes);
        return Err(failure.hint(
            "a project has modules in .cellwright/modules, settings in .cellwright/config.toml, an interpreter in .venv",
        ));
    }
    Trust::add(state_dir, &selected).map_err(|error| store_failure(state_dir, &error))?;
    if let Some(environment) = &environment {
        project_interpreter::record(state_dir, environment, InterpreterTrust::Trusted)
            .map_err(|error| store_failure(state_dir, &error))?;
    }
    let interpreter = environment.iter().map(|path| TrustedFile {
        path: path.display().to_string(),
        bytes: None,
        state: FileTrust::Trusted,
    });
    let files = selected.iter().map(|(path, content)| TrustedFile {
        path: path.display().to_string(),
        bytes: Some(content.len() as u64),
        state: FileTrust::Trusted,
    });
    let notices = unreadable.iter().map(|(path, reason)| {
        UserNotice::new(
            NoticeKind::NotTrusted,
            format!("skipped {}: {reason}", path.display()),
        )
    });
    Ok(TrustReport {
        action: TrustAction::Trust,
        files: files.chain(interpreter).collect(),
        notices: notices.collect(),
    })
}

/// Refuses to trust what another user owns or can write to: that user could change it afterwards.
fn refuse_foreign(engine: &Engine, path: &Path) -> Result<(), Failure> {
    let mut foreign = engine.settings_files(path).foreign;
    if let Err(error) = engine.owner_rule().check(path) {
        foreign.insert(0, error);
    }
    if foreign.is_empty() {
        return Ok(());
    }
    let message = format!("Another user can change what is in {}", path.display());
    let mut failure = Failure::new(Kind::Refused, message);
    failure.causes = foreign.iter().map(ForeignPath::to_string).collect();
    Err(failure
        .hint("nothing was trusted")
        .hint("the setting `projects.directories` accepts projects of other users"))
}

fn remove(engine: &Engine, state_dir: &Path, path: &Path) -> Result<TrustReport, Failure> {
    let path = trust::canonical_path(path);
    let project =
        trust::find_project_dir(&path, &engine.owner_rule()).map(|dir| trust::canonical_path(&dir));
    let is_selected = |file: &Path| {
        let in_project = project.as_ref().is_some_and(|dir| {
            let is_environment = dir.parent().is_some() && file.parent() == dir.parent();
            is_environment || file.starts_with(dir)
        });
        // The path selects the files of a project that does not exist any more.
        in_project || file == path || file.starts_with(&path)
    };
    let removed =
        Trust::remove(state_dir, &is_selected).map_err(|error| store_failure(state_dir, &error))?;
    let files = removed.iter().map(|path| TrustedFile {
        path: path.display().to_string(),
        bytes: None,
        state: FileTrust::Removed,
    });
    Ok(TrustReport {
        action: TrustAction::Remove,
        files: files.collect(),
        notices: Vec::new(),
    })
}

/// Returns the environment of a project that the user names: its directory, or its interpreter. The path is canonical.
fn named_environment(path: &Path) -> Option<PathBuf> {
    let has_python = |dir: &Path| {
        let programs = ["python3", "python"].map(|name| dir.join("bin").join(name));
        programs.iter().any(|program| program.exists())
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let dir = if path.is_dir() {
        path.to_owned()
    } else if name.starts_with("python") {
        path.parent()?.parent()?.to_owned()
    } else {
        return None;
    };
    has_python(&dir).then(|| trust::canonical_path(&dir))
}

/// Returns the environment whose interpreter code in `dir` would use because it is in the project. The path is canonical.
fn find_environment(engine: &Engine, dir: &Path) -> Option<PathBuf> {
    let search = InterpreterSearch {
        // The active environment must not hide the one of the project.
        virtual_env: None,
        conda_prefix: None,
        ..interpreter_search(engine, None, dir)
    };
    let interpreter = python::resolve(&search).ok()?;
    ProjectInterpreter::new(&interpreter)?;
    project_interpreter::environment_dir(&interpreter.program)
}

/// Returns the files of a project that need trust, or the file that `path` names. Adds files that cannot be read, with
/// the reason, to `unreadable`.
fn project_files(
    path: &Path,
    rule: &OwnerRule,
    unreadable: &mut Vec<(PathBuf, String)>,
) -> Result<Vec<PathBuf>, Failure> {
    let metadata = path.metadata().map_err(|error| {
        let message = format!("Could not find {}", path.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(error.to_string());
        failure
    })?;
    if metadata.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let Some(dir) = trust::find_project_dir(path, rule) else {
        return Ok(Vec::new());
    };
    let mut errors = Vec::new();
    let mut files = modules::list_files(&dir.join("modules"), &mut errors);
    unreadable.extend(errors.into_iter().map(|error| (error.path, error.message)));
    let settings = dir.join("config.toml");
    if settings.exists() {
        files.push(settings);
    }
    Ok(files)
}

fn store_failure(state_dir: &Path, error: &std::io::Error) -> Failure {
    let path = state_dir.join("trust.json");
    let message = format!("Could not read or write {}", path.display());
    let mut failure = Failure::new(Kind::BadFile, message);
    failure.causes.push(error.to_string());
    failure.hint("the file must be private to you; if it is removed, no file is trusted")
}
