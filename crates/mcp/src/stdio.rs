//! The server on standard input and output, for the client that started it.

use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_engine::signals::watch_signals;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::duplex;
use tokio::sync::mpsc;

use super::handler::Handler;
use super::line_filter;
use super::server::Server;

/// Serves until the client disconnects or a signal arrives, then shuts down the kernels.
pub async fn serve(server: Server) -> Result<(), Failure> {
    let (stopper, stop) = cellwright_kernel::StopSignal::new();
    let mut signals = tokio::task::JoinSet::new();
    signals.spawn(watch_signals(stopper)?);
    let handler = Handler::shared(server.clone());
    let served = tokio::select! {
        served = run(handler) => served,
        _ = stop.requested() => Ok(()),
    };
    server.shut_down().await;
    served
}

/// How long the last messages may take to be written.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Size of the buffers between the line guard and the SDK, in bytes.
const BUFFER_SIZE: usize = 256 * 1024;

async fn run(handler: Handler) -> Result<(), Failure> {
    let (stdin, stdout) = stdio_pipes();
    let (guarded, read) = duplex(BUFFER_SIZE);
    let (write, written) = duplex(BUFFER_SIZE);
    let (sender, responses) = mpsc::unbounded_channel();
    let mut pumps = tokio::task::JoinSet::new();
    pumps.spawn(line_filter::filter_input(stdin, guarded, sender));
    let writer = tokio::spawn(line_filter::merge_output(written, stdout, responses));
    let transport =
        AsyncRwTransport::new_server(read, write).with_max_line_length(line_filter::LINE_LIMIT + 2);
    let running = match Box::pin(handler.serve(transport)).await {
        Ok(running) => running,
        // The client disconnected before its first message.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => {
            let message = "The MCP client sent an invalid message";
            let mut failure = Failure::new(Kind::BadArguments, message);
            failure.causes.push(error.to_string());
            return Err(failure.hint(hint![
                "MCP clients start this command themselves; ",
                command("mcp --print-config NAME"),
                " prints their configuration",
            ]));
        }
    };
    // The connection is closed, whether by the client or by an error.
    running.waiting().await.ok();
    // The last messages may still be in the buffer.
    tokio::time::timeout(SHUTDOWN_GRACE, writer).await.ok();
    Ok(())
}
