//! Serves one client: the hello, then its requests in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cellwright_kernel::process::daemon;
use serde::Deserialize;
use serde_json::json;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::channel::ReplyChannel;
use super::super::connection::Connection;
use super::super::frame::{Frame, FrameError};
use super::super::hello::{ClientHello, Greeting, HostHello, PROTOCOL, VERSION};
use super::super::log::Level;
use super::super::protocol::HostRequest;
use super::Shared;

/// Time limit for the hello of a client.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves a client until it disconnects.
pub(super) async fn serve(stream: UnixStream, shared: Arc<Shared>) {
    let _client = CountGuard::new(&shared.clients);
    let mut connection = Connection::new(stream);
    let served = serve_requests(&mut connection, &shared).await;
    if let Err(error) = served
        && !matches!(error, FrameError::Io(_))
    {
        let entry = format!("invalid message from a client: {error}");
        shared.log.write(Level::Warn, &entry);
        // The client may still be able to read a reply.
        let message = error.to_string();
        let refusal = connection.send_refusal("not_understood", &message);
        timeout(HELLO_TIMEOUT, refusal).await.ok();
    }
}

async fn serve_requests(connection: &mut Connection, shared: &Shared) -> Result<(), FrameError> {
    let Ok(first) = timeout(HELLO_TIMEOUT, connection.next()).await else {
        return connection
            .send_refusal("no_hello", "no hello arrived in time")
            .await;
    };
    let Some(first) = first? else {
        return Ok(());
    };
    let Some(hello) = ClientHello::from_frame(&first) else {
        let message = "the first message must be a hello";
        return connection.send_refusal("no_hello", message).await;
    };
    let own = HostHello {
        protocol: PROTOCOL,
        version: VERSION.to_owned(),
        pid: shared.record.pid,
        instance: shared.record.instance.clone(),
    };
    connection.send(&Greeting { hello: own }).await?;
    while let Some(frame) = connection.next().await? {
        #[derive(Deserialize)]
        struct Do {
            r#do: String,
        }
        let Ok(Do { r#do: name }) = frame.parse() else {
            let message = "a request must have a member `do`";
            connection.send_refusal("not_understood", message).await?;
            continue;
        };
        let busy = CountGuard::new(&shared.busy);
        match name.as_str() {
            "status" => status(connection, shared).await?,
            "stop" => return stop(connection, shared).await,
            _ if hello.protocol != PROTOCOL => {
                let message = format!(
                    "this host has version {VERSION} and uses protocol {PROTOCOL}, \
                     not {}",
                    hello.protocol
                );
                connection.send_refusal("other_protocol", &message).await?;
            }
            _ => match parse_request(&name, &frame) {
                Ok(request) => {
                    let mut channel = ReplyChannel::Socket(connection);
                    shared.service.serve(request, &mut channel).await?;
                }
                Err((code, message)) => connection.send_refusal(code, &message).await?,
            },
        }
        drop(busy);
        // No other request has to wait for this.
        if shared.busy.load(Ordering::Relaxed) == 0 {
            connection.spin_for_request();
        }
    }
    Ok(())
}

/// Parses a request. The error has a code for programs and a message for users.
fn parse_request(name: &str, frame: &Frame) -> Result<HostRequest, (&'static str, String)> {
    // Parsed as its parameters: to find the tag, serde would first read the whole request into a buffer.
    let parsed = if name == HostRequest::EXECUTE {
        frame
            .parse()
            .map(|params| HostRequest::Execute(Box::new(params)))
    } else {
        frame.parse()
    };
    parsed.map_err(|error| {
        let code = if HostRequest::NAMES.contains(&name) {
            "not_understood"
        } else {
            "unknown_request"
        };
        (code, format!("`{name}` is not a valid request: {error}"))
    })
}

async fn status(connection: &mut Connection, shared: &Shared) -> Result<(), FrameError> {
    let record = &shared.record;
    let status = json!({
        "pid": record.pid,
        "version": record.version,
        "protocol": record.protocol,
        "instance": record.instance,
        "started": record.started,
        "uptime_seconds": shared.started.elapsed().as_secs(),
        "memory_bytes": daemon::resident_memory(),
        // Without the client that sent this request.
        "clients": shared.clients.load(Ordering::Relaxed).saturating_sub(1),
        "counts": shared.service.counts(),
    });
    connection
        .send(&json!({"end": true, "status": status}))
        .await
}

/// Stops the host. Replies when the service has shut down.
async fn stop(connection: &mut Connection, shared: &Shared) -> Result<(), FrameError> {
    let (sender, receiver) = oneshot::channel();
    // A server without a receiver is ending already.
    shared.stop_requests.send(sender).ok();
    let ended = receiver.await.unwrap_or_default();
    connection.send(&json!({"end": true, "ended": ended})).await
}

/// Adds one to a counter until it is dropped.
struct CountGuard<'a>(&'a AtomicUsize);

impl<'a> CountGuard<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::AcqRel);
        Self(counter)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
