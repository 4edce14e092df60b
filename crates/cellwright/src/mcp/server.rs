//! [`Server`]: what a client, or several, work with.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cellwright_output::Limits;
use rmcp::RoleServer;
use rmcp::model::CallToolResponse;
use rmcp::service::RequestContext;

use super::content;
use super::in_flight_calls::InFlightCalls;
use super::input::SuspendedCalls;
use super::roots::{self, Roots};
use super::subscriptions::Subscriptions;
use crate::engine::Engine;
use crate::execution::InlineLimits;
use crate::failure::Failure;
use crate::host::kernel_host::KernelHost;
use crate::settings::Settings;

/// Of each of many cells so much is held at the least, in bytes.
const CELL_TEXT_MIN: usize = 1000;

/// How long a client may take to say what its roots are.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);

/// How a server is to work.
#[derive(Clone, Debug)]
pub(crate) struct ServerOptions {
    /// Folders that were named; the client's do not count then.
    pub(crate) roots: Vec<PathBuf>,
    /// Where it was started.
    pub(crate) start_dir: PathBuf,
    /// Characters of text in an answer.
    pub(crate) text_limit: usize,
    /// How long a call may take before its code goes on as a run; `None`: as long as it takes.
    pub(crate) wait: Option<Duration>,
}

/// What clients work with; clones are the same.
#[derive(Clone)]
pub(crate) struct Server(Arc<Inner>);

struct Inner {
    engine: Engine,
    /// Where kernels run.
    kernels: KernelHost,
    options: ServerOptions,
    roots: Roots,
    /// Whether the client is still to be asked for its roots.
    ask_roots: AtomicBool,
    in_flight_calls: InFlightCalls,
    suspended_calls: SuspendedCalls,
    subscriptions: Subscriptions,
}

impl Server {
    /// A server whose code runs on `kernels`.
    pub(crate) fn new(engine: Engine, kernels: KernelHost, options: ServerOptions) -> Self {
        let named = !options.roots.is_empty();
        let roots = if named {
            Roots::new(&options.roots)
        } else {
            Roots::new(std::slice::from_ref(&options.start_dir))
        };
        Self(Arc::new(Inner {
            engine,
            kernels,
            options,
            roots,
            ask_roots: AtomicBool::new(!named),
            in_flight_calls: InFlightCalls::default(),
            suspended_calls: SuspendedCalls::default(),
            subscriptions: Subscriptions::default(),
        }))
    }

    pub(crate) fn engine(&self) -> &Engine {
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

    pub(super) fn in_flight_calls(&self) -> &InFlightCalls {
        &self.0.in_flight_calls
    }

    pub(super) fn suspended_calls(&self) -> &SuspendedCalls {
        &self.0.suspended_calls
    }

    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.0.subscriptions
    }

    /// Ends the kernels that are this server's own.
    pub(crate) async fn shut_down(&self) {
        self.0.suspended_calls.clear();
        self.0.kernels.shut_down().await;
    }

    /// One with other kernels: what one client does is nothing to another.
    pub(crate) fn with_own_kernels(&self) -> Result<Self, Failure> {
        let engine = self.0.engine.clone();
        let kernels = if self.0.kernels.is_in_process() {
            KernelHost::in_process(engine.clone())?
        } else {
            self.0.kernels.clone()
        };
        Ok(Self::new(engine, kernels, self.0.options.clone()))
    }

    /// How much of what a cell says is held for an answer of so many.
    pub(super) fn inline_limits(&self, cells: usize, settings: &Settings) -> InlineLimits {
        let usual = settings.output_limits();
        let most = self.0.options.text_limit;
        let share = (most / cells.max(1)).max(CELL_TEXT_MIN.min(most));
        InlineLimits::from(&Limits {
            inline_bytes: share,
            head_bytes: share * 2 / 5,
            ..usual
        })
    }

    /// The client's roots are to be asked for anew.
    pub(super) fn invalidate_roots(&self) {
        if self.0.options.roots.is_empty() {
            self.0.ask_roots.store(true, Ordering::Release);
        }
    }

    /// Asks the client for its roots, if it has any and was not asked yet.
    #[expect(
        deprecated,
        reason = "clients of the older revisions still say what their roots are"
    )]
    pub(super) async fn update_roots(&self, context: &RequestContext<RoleServer>) {
        if !self.0.ask_roots.load(Ordering::Acquire) {
            return;
        }
        let info = context.peer.peer_info();
        let has_roots = info.is_some_and(|info| info.capabilities.roots.is_some());
        if has_roots {
            let listed = tokio::time::timeout(ROOTS_TIMEOUT, context.peer.list_roots()).await;
            let Ok(Ok(listed)) = listed else {
                // The start folder counts, until it says that they have changed.
                self.0.ask_roots.store(false, Ordering::Release);
                return;
            };
            let folder = |root: &rmcp::model::Root| roots::path_from_file_uri(&root.uri);
            let folders: Vec<PathBuf> = listed.roots.iter().filter_map(folder).collect();
            if folders.is_empty() {
                self.0
                    .roots
                    .set(std::slice::from_ref(&self.0.options.start_dir));
            } else {
                self.0.roots.set(&folders);
            }
        }
        self.0.ask_roots.store(false, Ordering::Release);
    }
}

/// A call that came to nothing, as an answer.
pub(super) fn failure_response(failure: &Failure) -> CallToolResponse {
    content::failure_reply(failure).into_result().into()
}
