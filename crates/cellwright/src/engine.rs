//! [`Engine`]: what every verb needs, made once from the environment.

use std::path::PathBuf;

use cellwright_notebook::Baselines;
use etcetera::BaseStrategy;

use crate::env;

/// What every verb needs.
pub(crate) struct Engine {
    /// Where revisions are remembered; `None` without a home.
    pub(crate) baselines: Option<Baselines>,
}

impl Engine {
    /// Looks at the environment, which only the binary does.
    pub(crate) fn from_env() -> Self {
        Self {
            baselines: cache_folder().map(|folder| Baselines::new(folder.join("revisions"))),
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
