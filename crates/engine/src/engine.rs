//! [`Engine`]: the directories and stores that operations use, created once from the environment.

use std::path::{Path, PathBuf};

use cellwright_execution::DurationStore;
use cellwright_notebook::Baselines;
use cellwright_output::{Artifacts, Retention};
use cellwright_stdext::private::{ForeignPath, OwnerRule};
use etcetera::BaseStrategy;

use crate::bridge::BuildCommand;
use crate::env;
use crate::open_notebooks::OpenNotebooks;
use crate::project::{project_dir, project_tag};
use crate::settings::paths::{self, ProjectSearch};
use crate::settings::{Settings, SettingsError, SettingsSources};
use crate::staging::Staging;
use crate::trust::{Trust, canonical_path};

/// The directories and stores that operations use.
#[derive(Clone)]
pub struct Engine {
    /// Stores the baselines of revisions; `None` without a home directory.
    pub baselines: Option<Baselines>,
    /// Stores the full outputs of all projects; `None` without a home directory.
    pub artifacts: Option<Artifacts>,
    /// Where the files of the built-in runner are.
    pub staging: Staging,
    /// The file that keeps resolved shims of interpreters; `None` without a home directory.
    pub interpreter_cache: Option<PathBuf>,
    /// Stores the durations of cells; `None` without a home directory.
    pub durations: Option<DurationStore>,
    /// The directory of the user's settings and modules; `None` without a home directory, or if it is not the user's.
    pub config_dir: Option<PathBuf>,
    /// Why the directory of settings and modules is not the user's.
    pub foreign_config: Option<ForeignPath>,
    /// The directory for persistent state such as the trust record; `None` without a home directory.
    pub state_dir: Option<PathBuf>,
    /// The notebooks that Jupyter servers have open.
    pub open_notebooks: OpenNotebooks,
    /// Builds the command lines of bridge calls.
    pub build_command: BuildCommand,
}

impl Engine {
    /// Reads the environment variables. Only the binary reads them, never a library crate.
    pub fn from_env(build_command: BuildCommand) -> Self {
        let cache = cache_dir();
        let (state_dir, config_dir) = (state_dir(), own_config_dir());
        let staging = Staging::new(cache.as_deref());
        Self {
            interpreter_cache: cache.as_ref().map(|dir| dir.join("interpreters.json")),
            durations: cache
                .as_ref()
                .map(|dir| DurationStore::new(dir.join("durations"))),
            baselines: cache.map(|dir| Baselines::new(dir.join("revisions"))),
            artifacts: artifacts_dir().map(|dir| Artifacts::new(dir, Retention::default())),
            staging,
            foreign_config: config_dir.as_ref().err().cloned(),
            config_dir: config_dir.ok().flatten(),
            open_notebooks: OpenNotebooks::from_env(state_dir.as_deref()),
            state_dir,
            build_command,
        }
    }

    /// Reads the settings for `cwd`. Read at each call: most verbs need none, and a broken file must not keep them from
    /// working.
    pub fn settings(&self, cwd: &Path) -> Result<Settings, SettingsError> {
        let files = self.settings_files(cwd);
        let settings = Settings::load(&SettingsSources {
            user_file: files.user,
            project_file: files.project,
            read_variable: &env::value,
            is_trusted: &|path: &Path, content: &[u8]| {
                // With an unreadable record, nothing is trusted.
                let trust = Trust::read(self.state_dir.as_deref()).unwrap_or_default();
                trust.is_trusted(path, content)
            },
        })?;
        let foreign_config = self.foreign_config.iter().cloned();
        Ok(settings.with_foreign_paths(foreign_config.chain(files.foreign).collect()))
    }

    /// Decides which projects and environments count: those of this user and of root, and those in the directories that the
    /// user's settings name.
    pub fn owner_rule(&self) -> OwnerRule {
        let user_file = self.config_dir.as_deref().map(paths::user_file);
        let settings = Settings::load(&SettingsSources {
            user_file,
            project_file: None,
            read_variable: &env::value,
            is_trusted: &|_, _| false,
        });
        // Invalid settings are an error of the function that reads all of them.
        let named = settings.unwrap_or_default().projects.directories.clone();
        let home = home();
        let dir = |text: String| {
            let path = match (text.strip_prefix('~'), &home) {
                (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
                _ => PathBuf::from(text),
            };
            canonical_path(&path)
        };
        OwnerRule::with_exceptions(named.into_iter().map(dir).collect())
    }

    /// The settings files for `cwd`.
    pub fn settings_files(&self, cwd: &Path) -> SettingsFiles {
        let (home, rule) = (home(), self.owner_rule());
        let search = ProjectSearch::new(cwd, home.as_deref(), &rule);
        SettingsFiles {
            user: self.config_dir.as_deref().map(paths::user_file),
            project: search.settings_file(),
            project_default: search.default_settings_file(cwd),
            foreign: search.foreign(),
        }
    }

    /// The project that contains `dir`. The path is canonical.
    pub fn project_dir(&self, dir: &Path) -> PathBuf {
        project_dir(dir, home().as_deref(), &self.owner_rule())
    }

    /// The log file for the messages of runners, if the settings enable it.
    pub fn frame_log(&self, settings: &Settings) -> Option<PathBuf> {
        let enabled = settings.trace.frames;
        let dir = self.state_dir.as_deref().filter(|_| enabled)?;
        // Without the directory, opening the file fails, and that error is reported.
        std::fs::create_dir_all(dir).ok();
        Some(dir.join("frames.log"))
    }

    /// The store of full outputs, for the project of `dir`.
    pub fn artifacts_for(&self, dir: &Path) -> Option<Artifacts> {
        let project = project_dir(dir, home().as_deref(), &self.owner_rule());
        Some(self.artifacts.as_ref()?.for_project(project_tag(&project)))
    }

    /// The store of full outputs, for the project of `dir`, with the retention of the settings.
    pub fn artifacts_with_retention(&self, dir: &Path, settings: &Settings) -> Option<Artifacts> {
        let project = project_dir(dir, home().as_deref(), &self.owner_rule());
        let artifacts = Artifacts::new(self.artifacts.as_ref()?.dir(), settings.retention());
        Some(artifacts.for_project(project_tag(&project)))
    }
}

/// Paths of the settings files.
pub struct SettingsFiles {
    /// The user's file, which need not exist; `None` without a home directory.
    pub user: Option<PathBuf>,
    /// The project's file, if it exists.
    pub project: Option<PathBuf>,
    /// Where the project's file belongs if it does not exist.
    pub project_default: PathBuf,
    /// What does not count, because of its owner.
    pub foreign: Vec<ForeignPath>,
}

fn home() -> Option<PathBuf> {
    env::value(env::HOME).map(PathBuf::from)
}

/// The directory of the user's settings and modules. That of another user is an error: its modules would run as this user.
fn own_config_dir() -> Result<Option<PathBuf>, ForeignPath> {
    let Some(dir) = config_dir() else {
        return Ok(None);
    };
    let inner = [paths::user_file(&dir), dir.join("modules")];
    OwnerRule::default().check_all(std::iter::once(&dir).chain(&inner))?;
    Ok(Some(dir))
}

fn config_dir() -> Option<PathBuf> {
    if let Some(dir) = env::value(env::CONFIG_DIR) {
        return Some(PathBuf::from(dir));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("cellwright"))
}

fn cache_dir() -> Option<PathBuf> {
    if let Some(dir) = env::value(env::CACHE_DIR) {
        return Some(PathBuf::from(dir));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("cellwright"))
}

fn artifacts_dir() -> Option<PathBuf> {
    if let Some(dir) = env::value(env::ARTIFACTS_DIR) {
        return Some(PathBuf::from(dir));
    }
    Some(state_dir()?.join("artifacts"))
}

fn state_dir() -> Option<PathBuf> {
    if let Some(dir) = env::value(env::STATE_DIR) {
        return Some(PathBuf::from(dir));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    // macOS has no state directory.
    let state = base.state_dir().unwrap_or_else(|| base.data_dir());
    Some(state.join("cellwright"))
}
