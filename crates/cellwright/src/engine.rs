//! [`Engine`]: what every verb needs, made once from the environment.

use std::path::{Path, PathBuf};

use cellwright_notebook::Baselines;
use cellwright_output::{Artifacts, Retention};
use etcetera::BaseStrategy;

use crate::env;
use crate::host::reach::Reach;
use crate::settings::{Settings, SettingsError, Sources, place};
use crate::trust::Trust;

/// What every verb needs.
#[derive(Clone)]
pub(crate) struct Engine {
    /// Where revisions are remembered; `None` without a home.
    pub(crate) baselines: Option<Baselines>,
    /// Where full outputs are kept; `None` without a home.
    pub(crate) artifacts: Option<Artifacts>,
    /// Folders for the files of the built-in runner, in order of preference.
    pub(crate) staging: Vec<PathBuf>,
    /// Where the user's settings and modules are; `None` without a home.
    pub(crate) config: Option<PathBuf>,
    /// Where what must be remembered is; `None` without a home.
    pub(crate) state: Option<PathBuf>,
    /// Who keeps the kernels that stay.
    pub(crate) kernels: Reach,
}

impl Engine {
    /// Looks at the environment, which only the binary does.
    pub(crate) fn from_env() -> Self {
        let cache = cache_folder();
        let mut staging: Vec<PathBuf> = cache.iter().cloned().collect();
        // Whoever has no home, or one that cannot be written to.
        staging.push(std::env::temp_dir().join(cellwright_kernel::backend::runner::shared_name()));
        Self {
            baselines: cache.map(|folder| Baselines::new(folder.join("revisions"))),
            artifacts: artifacts_folder().map(|dir| Artifacts::new(dir, Retention::default())),
            staging,
            config: config_folder(),
            state: state_folder(),
            kernels: Reach::Host,
        }
    }

    /// The settings for work in `cwd`. Read when asked for: most verbs need none, and a broken file must
    /// not keep them from working.
    pub(crate) fn settings(&self, cwd: &Path) -> Result<Settings, SettingsError> {
        let files = self.settings_files(cwd);
        Settings::load(&Sources {
            user: files.user,
            project: files.project,
            variable: &env::value,
            is_trusted: &|path: &Path, content: &[u8]| {
                // What cannot be read was not trusted.
                let trust = Trust::read(self.state.as_deref()).unwrap_or_default();
                trust.is_trusted(path, content)
            },
        })
    }

    /// Which files those are.
    pub(crate) fn settings_files(&self, cwd: &Path) -> SettingsFiles {
        let home = env::value(env::HOME).map(PathBuf::from);
        SettingsFiles {
            user: self.config.as_deref().map(place::of_user),
            project: place::of_project(cwd, home.as_deref()),
            project_would_be: place::for_project(cwd, home.as_deref()),
        }
    }

    /// The file that frames are written to, if the settings want that.
    pub(crate) fn trace(&self, settings: &Settings) -> Option<PathBuf> {
        let wanted = settings.trace.frames;
        let folder = self.state.as_deref().filter(|_| wanted)?;
        // Without a folder there is no file, which is told.
        std::fs::create_dir_all(folder).ok();
        Some(folder.join("frames.log"))
    }

    /// Where full outputs are kept, for as long as the settings say.
    pub(crate) fn artifacts_kept(&self, settings: &Settings) -> Option<Artifacts> {
        let artifacts = self.artifacts.as_ref()?;
        Some(Artifacts::new(artifacts.dir(), settings.retention()))
    }
}

/// The files that settings are read from.
pub(crate) struct SettingsFiles {
    /// The user's, there or not; `None` without a home.
    pub(crate) user: Option<PathBuf>,
    /// The project's, if there is one.
    pub(crate) project: Option<PathBuf>,
    /// Where the project's would be looked for first.
    pub(crate) project_would_be: PathBuf,
}

fn config_folder() -> Option<PathBuf> {
    if let Some(folder) = env::value(env::CONFIG_DIR) {
        return Some(PathBuf::from(folder));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("cellwright"))
}

fn cache_folder() -> Option<PathBuf> {
    if let Some(folder) = env::value(env::CACHE_DIR) {
        return Some(PathBuf::from(folder));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("cellwright"))
}

fn artifacts_folder() -> Option<PathBuf> {
    if let Some(folder) = env::value(env::ARTIFACTS_DIR) {
        return Some(PathBuf::from(folder));
    }
    Some(state_folder()?.join("artifacts"))
}

fn state_folder() -> Option<PathBuf> {
    if let Some(folder) = env::value(env::STATE_DIR) {
        return Some(PathBuf::from(folder));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    // macOS has no folder of that sort.
    let state = base.state_dir().unwrap_or_else(|| base.data_dir());
    Some(state.join("cellwright"))
}
