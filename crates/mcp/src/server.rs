//! [`Server`]: the state that the connections of one or several clients share.

mod notebooks;
pub(crate) mod resources;
pub(crate) mod subscriptions;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::project::project_tag;
use cellwright_engine::settings::Settings;
use cellwright_execution::{ExecutionStatus, InlineLimits};
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::reply::{RunInfo, SessionInfo};
use cellwright_operations::artifact;
use cellwright_output::{ArtifactScope, Artifacts, Limits};
use rmcp::RoleServer;
use rmcp::model::CallToolResponse;
use rmcp::service::RequestContext;

use self::subscriptions::Subscriptions;
use super::content;
use super::in_flight_calls::InFlightCalls;
use super::input::SuspendedCalls;
use super::roots::{self, Roots};

/// Minimum size of the inline output of each cell, in bytes.
const CELL_TEXT_MIN: usize = 1000;

/// How long a client may take to list its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Directories that the user named; they replace the client's roots.
    pub roots: Vec<PathBuf>,
    /// The directory in which the server was started.
    pub start_dir: PathBuf,
    /// Maximum number of characters of text in a reply.
    pub text_limit: usize,
    /// How long a call waits for its code, which then continues as a run; `None` waits for the end.
    pub wait: Option<Duration>,
    /// Whether replies repeat their content as structured content.
    pub structured: bool,
    /// Text before the name of each tool.
    pub tool_prefix: String,
}

/// A server. Clones share their state.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    engine: Engine,
    /// The host of the kernels.
    kernels: KernelHost,
    options: ServerOptions,
    roots: Roots,
    /// Whether the client's roots must be requested before they are used.
    roots_outdated: AtomicBool,
    in_flight_calls: InFlightCalls,
    suspended_calls: SuspendedCalls,
    subscriptions: Subscriptions,
}

impl Server {
    /// The sessions that the client may use. The shared host also has those of other projects of the user.
    pub(crate) async fn sessions(&self) -> Result<Vec<SessionInfo>, Failure> {
        let mut sessions = self.kernels().list_sessions().await?.unwrap_or_default();
        sessions.retain(|session| self.may_use(Path::new(&session.cwd)));
        Ok(sessions)
    }

    /// The runs that the client may follow and stop.
    pub(crate) async fn runs(&self) -> Result<Vec<RunInfo>, Failure> {
        let mut runs = self.kernels().list_runs().await?.unwrap_or_default();
        runs.retain(|run| self.may_use(Path::new(&run.cwd)));
        Ok(runs)
    }

    /// Whether the client may use sessions and runs in a directory: all of an in-process host, which are its own, and those
    /// in its roots of the shared host.
    fn may_use(&self, dir: &Path) -> bool {
        let roots = self.0.roots.paths();
        self.0.kernels.is_in_process() || roots.iter().any(|root| dir.starts_with(root))
    }

    /// Creates a server whose code runs on `kernels`.
    pub fn new(engine: Engine, kernels: KernelHost, options: ServerOptions) -> Self {
        let named_by_user = !options.roots.is_empty();
        let roots = if named_by_user {
            Roots::new(&options.roots)
        } else {
            Roots::new(std::slice::from_ref(&options.start_dir))
        };
        Self(Arc::new(Inner {
            engine,
            kernels,
            options,
            roots,
            roots_outdated: AtomicBool::new(!named_by_user),
            in_flight_calls: InFlightCalls::default(),
            suspended_calls: SuspendedCalls::default(),
            subscriptions: Subscriptions::default(),
        }))
    }

    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(super) fn kernels(&self) -> &KernelHost {
        &self.0.kernels
    }

    pub(super) fn options(&self) -> &ServerOptions {
        &self.0.options
    }

    pub(super) fn roots(&self) -> &Roots {
        &self.0.roots
    }

    /// The directory whose project the client works on: the first root.
    pub(super) fn project_dir(&self) -> PathBuf {
        let first = self.0.roots.paths().into_iter().next();
        first.unwrap_or_else(|| self.0.options.start_dir.clone())
    }

    /// The artifact store, for the project of the client. It lists and opens the artifacts of the client's roots.
    pub(super) fn artifacts(&self) -> Result<Artifacts, Failure> {
        let engine = &self.0.engine;
        let store = artifact::project_store(engine, &self.project_dir())?;
        let directories = self.0.roots.paths();
        // A root in a larger project sees only the artifacts that are from the root.
        let is_project = |root: &&PathBuf| engine.project_dir(root) == **root;
        let projects = directories.iter().filter(is_project);
        Ok(store.for_scope(ArtifactScope {
            projects: projects.map(|root| project_tag(root)).collect(),
            directories,
        }))
    }

    pub(super) fn in_flight_calls(&self) -> &InFlightCalls {
        &self.0.in_flight_calls
    }

    pub(super) fn suspended_calls(&self) -> &SuspendedCalls {
        &self.0.suspended_calls
    }

    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.0.subscriptions
    }

    /// Cancels suspended calls and shuts down the kernels of an in-process host.
    pub async fn shut_down(&self) {
        self.0.suspended_calls.clear();
        self.0.kernels.shut_down().await;
    }

    /// Whether code runs on the kernels of an in-process host.
    pub(super) async fn has_active_runs(&self) -> bool {
        if !self.0.kernels.is_in_process() {
            return false;
        }
        let runs = self.0.kernels.list_runs().await;
        let runs = runs.ok().flatten().unwrap_or_default();
        let is_active =
            |status| matches!(status, ExecutionStatus::Pending | ExecutionStatus::Running);
        runs.iter().any(|run| is_active(run.status))
    }

    /// Returns a server with separate kernels, so that clients do not affect each other. The limit on sessions holds for
    /// all clients together.
    pub async fn with_own_kernels(&self) -> Result<Self, Failure> {
        let engine = self.0.engine.clone();
        let (kernels, separate_engine) = (self.0.kernels.clone(), engine.clone());
        // Creates files, which must not delay the other clients.
        let separate = tokio::task::spawn_blocking(move || kernels.separate(separate_engine)).await;
        let kernels = separate.map_err(io::Error::from)??;
        Ok(Self::new(engine, kernels, self.0.options.clone()))
    }

    /// Limits of the inline output of each cell in a reply with this number of cells.
    pub(super) fn inline_limits(&self, cells: usize, settings: &Settings) -> InlineLimits {
        let configured = settings.output_limits();
        let limit = self.0.options.text_limit;
        let share = (limit / cells.max(1)).max(CELL_TEXT_MIN.min(limit));
        InlineLimits::from(&Limits {
            inline_bytes: share,
            head_bytes: share * 2 / 5,
            ..configured
        })
    }

    /// Makes the next call request the client's roots again.
    pub(super) fn invalidate_roots(&self) {
        if self.0.options.roots.is_empty() {
            self.0.roots_outdated.store(true, Ordering::Release);
        }
    }

    /// Requests the client's roots if they are outdated and the client has any.
    #[expect(
        deprecated,
        reason = "clients of older protocol revisions still list roots"
    )]
    pub(super) async fn update_roots(&self, context: &RequestContext<RoleServer>) {
        if !self.0.roots_outdated.load(Ordering::Acquire) {
            return;
        }
        let info = context.peer.peer_info();
        let has_roots = info.is_some_and(|info| info.capabilities.roots.is_some());
        if has_roots {
            let listed = tokio::time::timeout(ROOTS_TIMEOUT, context.peer.list_roots()).await;
            let Ok(Ok(listed)) = listed else {
                // Keep the start directory until the client reports a change.
                self.0.roots_outdated.store(false, Ordering::Release);
                return;
            };
            let path = |root: &rmcp::model::Root| roots::path_from_file_uri(&root.uri);
            let paths: Vec<PathBuf> = listed.roots.iter().filter_map(path).collect();
            if paths.is_empty() {
                self.0
                    .roots
                    .set(std::slice::from_ref(&self.0.options.start_dir));
            } else {
                self.0.roots.set(&paths);
            }
        }
        self.0.roots_outdated.store(false, Ordering::Release);
    }
}

/// Converts a failure into the response of a call.
pub(super) fn failure_response(failure: &Failure, options: &ServerOptions) -> CallToolResponse {
    content::failure_reply(failure)
        .into_result(options.structured)
        .into()
}
