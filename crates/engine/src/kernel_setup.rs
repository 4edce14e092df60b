//! Sets up kernels that Cellwright started: loads the modules of the user and of trusted projects, and gives the cells
//! access to the bridge through environment variables. The owner of a kernel creates one [`KernelContext`] for it.

mod bridged_kernel;

use std::path::Path;

use cellwright_kernel::modules::{self, DiscoveredModules, ModuleFailure};
use cellwright_kernel::{Kernel, KernelError, StopSignal};
use serde::{Deserialize, Serialize};

pub use bridged_kernel::{KernelSetup, SharedBridge, with_notice};

use crate::bridge::{Bridge, CallContext, CellGuard, SessionAccess};
use crate::engine::Engine;
use crate::env;
use crate::settings::Settings;
use crate::trust::{self, Trust, TrustState};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};

/// How modules are loaded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ModuleOptions {
    /// Whether modules are loaded at all.
    pub enabled: bool,
    /// Whether a failing module keeps the kernel from starting.
    pub strict: bool,
}

impl From<&Settings> for ModuleOptions {
    fn from(settings: &Settings) -> Self {
        Self {
            enabled: settings.modules.enabled,
            strict: settings.modules.strict,
        }
    }
}

/// The bridge access and the environment variables of one session's kernel.
pub struct KernelContext {
    /// `None`: cells cannot call the bridge.
    access: Option<SessionAccess>,
    url: String,
    session: String,
}

/// The result of loading the modules.
#[derive(Debug, Default)]
pub struct SetupReport {
    /// About modules that failed, printed or were skipped.
    pub notices: Vec<UserNotice>,
    /// Modules that could not be read or raised an exception.
    pub failures: Vec<ModuleFailure>,
}

impl KernelContext {
    /// Registers the session with the bridge. Without a bridge, its cells cannot call verbs.
    pub fn new(bridge: Option<&Bridge>, context: CallContext) -> Self {
        let session = context.session.clone();
        let access = bridge.and_then(|bridge| bridge.register(context).ok());
        let url = bridge.map(Bridge::url).unwrap_or_default().to_owned();
        Self {
            access,
            url,
            session,
        }
    }

    /// The environment variables of every request. Each request sets them, because a kernel can outlive its bridge.
    pub fn env(&self) -> Vec<(String, Option<String>)> {
        let access = self.access.as_ref();
        let url = access.map(|_| self.url.clone());
        let token = access.map(|access| access.token().to_owned());
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

    /// Lets a cell call verbs until the guard is dropped.
    pub fn begin_cell(&self, stop: &StopSignal) -> Option<CellGuard> {
        self.access.as_ref().map(|access| access.begin_cell(stop))
    }

    /// Runs the user's modules, and the trusted modules of the project.
    pub async fn load_modules(
        &self,
        kernel: &mut dyn Kernel,
        engine: &Engine,
        cwd: &Path,
        stop: &StopSignal,
    ) -> Result<SetupReport, KernelError> {
        let (found, mut notices) = find_modules(engine, cwd);
        let _cell = self.begin_cell(stop);
        let loaded = modules::load(kernel, &found.modules, &self.env(), stop).await?;
        let mut failures = found.failures;
        let unreadable = failures.len();
        failures.extend(loaded.failures);
        for (index, failure) in failures.iter().enumerate() {
            let result = if index < unreadable {
                "was skipped"
            } else {
                "failed"
            };
            let text = format!(
                "the module {} {result}: {}",
                location(failure),
                failure.message
            );
            notices.push(UserNotice::new(NoticeKind::ModuleFailed, text));
        }
        for (path, text) in loaded.printed {
            let text = format!("the module {} printed: {text}", path.display());
            notices.push(UserNotice::new(NoticeKind::ModulePrinted, text));
        }
        Ok(SetupReport { notices, failures })
    }
}

fn location(failure: &ModuleFailure) -> String {
    match failure.line {
        Some(line) => format!("{}:{line}", failure.path.display()),
        None => failure.path.display().to_string(),
    }
}

/// Returns the modules for a working directory, and notices about those that are skipped.
pub fn find_modules(engine: &Engine, cwd: &Path) -> (DiscoveredModules, Vec<UserNotice>) {
    let mut notices = Vec::new();
    let user = engine.config_dir.as_ref().map(|dir| dir.join("modules"));
    let rule = engine.owner_rule();
    let project = trust::find_project_dir(cwd, &rule).map(|dir| dir.join("modules"));
    let project = project.filter(|dir| dir.is_dir() && rule.check(dir).is_ok());
    let trust = match &project {
        // Most projects have no modules: the record is not read.
        None => Trust::default(),
        Some(_) => Trust::read(engine.state_dir.as_deref()).unwrap_or_else(|error| {
            let text = format!("the trust record cannot be read, so no module is trusted: {error}");
            notices.push(UserNotice::new(NoticeKind::TrustUnreadable, text));
            Trust::default()
        }),
    };
    let trusted = |path: &Path, content: &[u8]| trust.is_trusted(path, content);
    let found = modules::discover(user.as_deref(), project.as_deref(), &trusted);
    let state = |path: &Path| {
        let content = modules::read_source(path).unwrap_or_default();
        trust.state(path, content.as_bytes())
    };
    let (changed, unknown): (Vec<_>, Vec<_>) = found
        .untrusted
        .iter()
        .partition(|path| state(path) == TrustState::Changed);
    let names = |paths: &[&std::path::PathBuf]| {
        let name = |path: &&std::path::PathBuf| path.display().to_string();
        paths.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    if !changed.is_empty() {
        let text = format!(
            "skipped changed module {}; review it, then run `cellwright trust` again",
            names(&changed)
        );
        notices.push(UserNotice::new(NoticeKind::ModuleChanged, text));
    }
    if !unknown.is_empty() {
        let text = format!(
            "skipped untrusted module {}; review it, then run `cellwright trust`",
            names(&unknown)
        );
        notices.push(UserNotice::new(NoticeKind::ModuleUntrusted, text));
    }
    (found, notices)
}
