//! The server on standard input and output, for one client that started it.

use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::duplex;
use tokio::sync::mpsc;

use super::handler::Handler;
use super::line_guard;
use super::server::Server;
use crate::failure::{Failure, Kind};
use crate::local_execution::watch_signals;

/// Serves until the client closes its end, or a signal comes; then the kernels go.
pub(crate) async fn serve(server: Server) -> Result<(), Failure> {
    let (stopper, stop) = cellwright_kernel::StopSignal::new();
    let mut signals = tokio::task::JoinSet::new();
    signals.spawn(watch_signals(stopper)?);
    let handler = Handler::common(server.clone());
    let served = tokio::select! {
        served = run(handler) => served,
        _ = stop.requested() => Ok(()),
    };
    server.shut_down().await;
    served
}

/// How long the last words may take.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// What waits between us and the SDK, in bytes.
const BUFFER_SIZE: usize = 256 * 1024;

async fn run(handler: Handler) -> Result<(), Failure> {
    let (stdin, stdout) = stdio_pipes();
    let (heard, read) = duplex(BUFFER_SIZE);
    let (write, said) = duplex(BUFFER_SIZE);
    let (sender, answers) = mpsc::unbounded_channel();
    let mut pumps = tokio::task::JoinSet::new();
    pumps.spawn(line_guard::filter_input(stdin, heard, sender));
    let writing = tokio::spawn(line_guard::merge_output(said, stdout, answers));
    let transport =
        AsyncRwTransport::new_server(read, write).with_max_line_length(line_guard::LINE_LIMIT + 2);
    let running = match handler.serve(transport).await {
        Ok(running) => running,
        // It went before it said anything.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => {
            let message = "The client could not be understood";
            let mut failure = Failure::new(Kind::BadArguments, message);
            failure.causes.push(error.to_string());
            return Err(failure.hint(
                "this is for MCP clients, which start it themselves; `cellwright mcp --print-config NAME` says how",
            ));
        }
    };
    // Whatever the reason, it is over.
    running.waiting().await.ok();
    // What was said last is still on its way.
    tokio::time::timeout(SHUTDOWN_GRACE, writing).await.ok();
    Ok(())
}
