//! [`Service`]: what a server offers to its clients. The server knows nothing else about it.

use std::sync::Arc;

use cellwright_kernel::BoxFuture;
use serde_json::{Map, Value};

use super::connection::Connection;
use super::frame::{Frame, FrameError};
use super::log::Log;
use crate::engine::Engine;
use crate::runtime_dir::RuntimeDir;

/// What a client asks for.
#[derive(Debug)]
pub(crate) struct ServiceRequest {
    /// The member `do`.
    pub(crate) name: String,
    /// All of it.
    pub(crate) frame: Frame,
}

/// What a host does for its clients. `status` and `stop` are answered by the server.
pub(crate) trait Service: Send + Sync {
    /// Answers a request. The last frame of the answer has a member `end`; the client may send
    /// frames meanwhile, and if it goes, [`Connection::next`] says `None`. An error means that the
    /// connection is of no more use.
    fn handle<'a>(
        &'a self,
        request: ServiceRequest,
        connection: &'a mut Connection,
    ) -> BoxFuture<'a, Result<(), FrameError>>;

    /// How many there are of what it keeps, for `status`.
    fn counts(&self) -> Map<String, Value>;

    /// Whether it keeps nothing, so that the host may end.
    fn is_idle(&self) -> bool;

    /// Ends everything, and says how many of what. Requests in progress are to end by that, too.
    fn shut_down(&self) -> BoxFuture<'_, Map<String, Value>>;
}

/// The service of a host that lives in `folder`. Must be called within a runtime.
pub(super) fn new_service(engine: Engine, folder: &RuntimeDir, log: &Arc<Log>) -> Arc<dyn Service> {
    Arc::new(super::keeper::HostService::new(engine, folder, log))
}
