//! [`Engine`]: what every verb needs, made once from the environment.

use std::path::PathBuf;

use cellwright_notebook::Baselines;
use cellwright_output::{Artifacts, Retention};
use etcetera::BaseStrategy;

use crate::env;

/// What every verb needs.
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
        }
    }
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

fn config_folder() -> Option<PathBuf> {
    if let Some(folder) = env::value(env::CONFIG_DIR) {
        return Some(PathBuf::from(folder));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("cellwright"))
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
