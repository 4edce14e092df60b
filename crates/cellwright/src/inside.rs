//! What a kernel of ours finds inside: the user's modules, the way back to our verbs, and the variables
//! that lead there. Whoever owns a kernel makes one [`Inside`] for it.

mod furnished;

use std::path::Path;

use cellwright_kernel::modules::{self, Found, ModuleFailure};
use cellwright_kernel::{Kernel, KernelError, Stop};
use serde::{Deserialize, Serialize};

pub(crate) use furnished::{Furnishing, SharedBridge};

use crate::bridge::{Bridge, Door, Open, Pass};
use crate::engine::Engine;
use crate::env;
use crate::notice::Told;
use crate::settings::Settings;
use crate::trust::{self, Standing, Trust};

/// Whether modules of one's own are loaded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Modules {
    pub(crate) enabled: bool,
    /// Whether one that fails keeps the kernel from starting.
    pub(crate) strict: bool,
}

impl From<&Settings> for Modules {
    fn from(settings: &Settings) -> Self {
        Self {
            enabled: settings.modules.enabled,
            strict: settings.modules.strict,
        }
    }
}

/// What one session's kernel finds inside.
pub(crate) struct Inside {
    /// `None`: there is no way back.
    pass: Option<Pass>,
    url: String,
    session: String,
}

/// A kernel that is ready for its first cell.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// What could surprise.
    pub(crate) notices: Vec<Told>,
    /// Modules that did not run, or not to their end.
    pub(crate) failures: Vec<ModuleFailure>,
}

impl Inside {
    /// For a session; without a bridge its cells can call no verbs.
    pub(crate) fn new(bridge: Option<&Bridge>, door: Door) -> Self {
        let session = door.session.clone();
        let pass = bridge.and_then(|bridge| bridge.admit(door).ok());
        let url = bridge.map(Bridge::url).unwrap_or_default().to_owned();
        Self { pass, url, session }
    }

    /// The variables of every request; renewed each time, because a kernel can outlive what they name.
    pub(crate) fn env(&self) -> Vec<(String, Option<String>)> {
        let pass = self.pass.as_ref();
        let url = pass.map(|_| self.url.clone());
        let token = pass.map(|pass| pass.token().to_owned());
        let session = Some(self.session.clone());
        [
            (env::SESSION, session.clone()),
            (env::BRIDGE_URL, url.clone()),
            (env::BRIDGE_TOKEN, token.clone()),
            ("PI_TOOL_BRIDGE_URL", url),
            ("PI_TOOL_BRIDGE_TOKEN", token),
            ("PI_TOOL_BRIDGE_SESSION", session),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// A cell begins: it can call verbs until the guard is dropped.
    pub(crate) fn cell(&self, stop: &Stop) -> Option<Open> {
        self.pass.as_ref().map(|pass| pass.open(stop))
    }

    /// Runs the user's modules, and those of the project that are trusted.
    pub(crate) async fn prepare(
        &self,
        kernel: &mut dyn Kernel,
        engine: &Engine,
        cwd: &Path,
        stop: &Stop,
    ) -> Result<Prepared, KernelError> {
        let (found, mut notices) = find_modules(engine, cwd);
        let _open = self.cell(stop);
        let loaded = modules::load(kernel, &found.modules, &self.env(), stop).await?;
        let mut failures = found.trouble;
        let left_out = failures.len();
        failures.extend(loaded.failures);
        for (at, failure) in failures.iter().enumerate() {
            let how = if at < left_out {
                "was left out"
            } else {
                "failed"
            };
            let text = format!("the module {} {how}: {}", place(failure), failure.what);
            notices.push(Told::new("module_failed", text));
        }
        for (path, text) in loaded.printed {
            let text = format!("the module {} printed: {text}", path.display());
            notices.push(Told::new("module_printed", text));
        }
        Ok(Prepared { notices, failures })
    }
}

fn place(failure: &ModuleFailure) -> String {
    match failure.line {
        Some(line) => format!("{}:{line}", failure.path.display()),
        None => failure.path.display().to_string(),
    }
}

/// The modules for a working directory, and what to say about those that are not run.
pub(crate) fn find_modules(engine: &Engine, cwd: &Path) -> (Found, Vec<Told>) {
    let mut notices = Vec::new();
    let user = engine.config.as_ref().map(|folder| folder.join("modules"));
    let project = trust::project_folder(cwd).map(|folder| folder.join("modules"));
    let project = project.filter(|folder| folder.is_dir());
    let trust = match &project {
        // Most projects have none; then nothing needs to be known.
        None => Trust::default(),
        Some(_) => Trust::read(engine.state.as_deref()).unwrap_or_else(|error| {
            let text = format!("what was trusted cannot be read, so nothing is: {error}");
            notices.push(Told::new("trust_unreadable", text));
            Trust::default()
        }),
    };
    let trusted = |path: &Path, content: &[u8]| trust.is_trusted(path, content);
    let found = modules::find(user.as_deref(), project.as_deref(), &trusted);
    let standing = |path: &Path| {
        let content = std::fs::read(path).unwrap_or_default();
        trust.standing(path, &content)
    };
    let (changed, unknown): (Vec<_>, Vec<_>) = found
        .untrusted
        .iter()
        .partition(|path| standing(path) == Standing::Changed);
    let names = |paths: &[&std::path::PathBuf]| {
        let name = |path: &&std::path::PathBuf| path.display().to_string();
        paths.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    if !changed.is_empty() {
        let text = format!(
            "not run, because changed since it was trusted: {}; look at it, then `cellwright trust`",
            names(&changed)
        );
        notices.push(Told::new("module_changed", text));
    }
    if !unknown.is_empty() {
        let text = format!(
            "not run, because nobody has trusted it yet: {}; look at it, then `cellwright trust`",
            names(&unknown)
        );
        notices.push(Told::new("module_untrusted", text));
    }
    (found, notices)
}
