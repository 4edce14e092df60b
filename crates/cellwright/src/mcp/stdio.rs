//! The server on standard input and output, for one client that started it.

use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;

use super::handler::Handler;
use super::server::Server;
use crate::evaluation::alone::watch_signals;
use crate::failure::{Failure, Kind};

/// Serves until the client closes its end, or a signal comes; then the kernels go.
pub(crate) async fn serve(server: Server) -> Result<(), Failure> {
    let (stopper, stop) = cellwright_kernel::Stop::new();
    let mut signals = tokio::task::JoinSet::new();
    signals.spawn(watch_signals(stopper)?);
    let handler = Handler::common(server.clone());
    let served = tokio::select! {
        served = run(handler) => served,
        _ = stop.pulled() => Ok(()),
    };
    server.end().await;
    served
}

async fn run(handler: Handler) -> Result<(), Failure> {
    let running = match handler.serve(stdio_pipes()).await {
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
    Ok(())
}
