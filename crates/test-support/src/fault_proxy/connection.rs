//! One connection of a client through the proxy.

use std::io;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::http::{Head, Reader, answer, status};
use super::rule::{Direction, Fault, Rule};
use super::{SeenRequest, Shared};

/// The request whose data the connection carries now.
#[derive(Default)]
struct Active {
    method: String,
    target: String,
    /// The fault of a rule that counts its requests.
    fault: Option<Fault>,
    /// Number of bytes of the answer that the client has received.
    answered: usize,
}

/// State of both directions.
struct Connection<'a> {
    shared: &'a Shared,
    active: Mutex<Active>,
    to_client: AsyncMutex<OwnedWriteHalf>,
    /// Status of the answer to the last request that asks for an upgrade.
    upgrade: watch::Sender<Option<u16>>,
}

/// Carries a connection to its end.
pub(super) async fn run(client: TcpStream, shared: &Shared) {
    let accept_only = |rules: &Vec<Rule>| {
        let mut rules = rules.iter();
        rules.any(|rule| rule.fault == Fault::AcceptOnly)
    };
    let is_held = accept_only(&shared.rules.borrow());
    if is_held {
        // The socket stays open.
        std::future::pending::<()>().await;
    }
    let Ok(server) = TcpStream::connect(shared.upstream).await else {
        return;
    };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let connection = Connection {
        shared,
        active: Mutex::default(),
        to_client: AsyncMutex::new(to_client),
        upgrade: watch::Sender::new(None),
    };
    tokio::select! {
        // A server that closes its side ends the connection. A client that closes its side waits for answers.
        _ = connection.answers(Reader::new(from_server)) => {}
        _ = async {
            connection.requests(Reader::new(from_client), to_server).await?;
            std::future::pending::<io::Result<()>>().await
        } => {}
    }
}

impl Connection<'_> {
    /// Reads requests and passes them on.
    async fn requests<R: AsyncRead + Unpin>(
        &self,
        mut client: Reader<R>,
        server: OwnedWriteHalf,
    ) -> io::Result<()> {
        let server = AsyncMutex::new(server);
        while let Some(mut head) = client.request().await? {
            match self.begin(&head) {
                Some(Fault::Status(status)) => {
                    while client.body(&mut head.body).await?.is_some() {}
                    self.to_client
                        .lock()
                        .await
                        .write_all(&answer(status))
                        .await?;
                    continue;
                }
                Some(Fault::NoAnswer) => {
                    while !client.read().await?.is_empty() {}
                    // The client has closed its side; the server never knew of it.
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                _ => {}
            }
            self.pass(&server, Direction::ToServer, head.bytes).await?;
            while let Some(piece) = client.body(&mut head.body).await? {
                self.pass(&server, Direction::ToServer, piece).await?;
            }
            if head.upgrade && self.is_upgraded().await {
                self.copy(&mut client, &server, Direction::ToServer).await?;
                break;
            }
        }
        server.lock().await.shutdown().await
    }

    /// Passes answers on.
    async fn answers<R: AsyncRead + Unpin>(&self, mut server: Reader<R>) -> io::Result<()> {
        self.copy(&mut server, &self.to_client, Direction::ToClient)
            .await
    }

    /// Records a request and returns its fault.
    fn begin(&self, head: &Head) -> Option<Fault> {
        let fault = self.shared.take_fault(&head.method, &head.target);
        if let Ok(mut active) = self.active.lock() {
            *active = Active {
                method: head.method.clone(),
                target: head.target.clone(),
                fault,
                answered: 0,
            };
        }
        self.upgrade.send_replace(None);
        self.shared.requests.send_modify(|requests| {
            requests.push(SeenRequest {
                method: head.method.clone(),
                target: head.target.clone(),
                head: String::from_utf8_lossy(&head.bytes).into_owned(),
            });
        });
        fault.or_else(|| self.fault())
    }

    /// The fault of the active request, as the rules are now.
    fn fault(&self) -> Option<Fault> {
        let active = self.active.lock().ok()?;
        if active.method.is_empty() {
            // No request yet.
            return None;
        }
        active.fault.or_else(|| {
            let rules = self.shared.rules.borrow();
            let mut applies = rules
                .iter()
                .filter(|rule| rule.left.is_none() && rule.applies(&active.method, &active.target));
            applies.next().map(|rule| rule.fault)
        })
    }

    /// Waits for the answer to a request that asks for an upgrade.
    async fn is_upgraded(&self) -> bool {
        let mut upgrade = self.upgrade.subscribe();
        let status = upgrade.wait_for(Option::is_some).await;
        matches!(status.as_deref(), Ok(Some(101)))
    }

    /// Copies one direction until its end, with the faults of the active request.
    async fn copy<R: AsyncRead + Unpin>(
        &self,
        source: &mut Reader<R>,
        target: &AsyncMutex<OwnedWriteHalf>,
        direction: Direction,
    ) -> io::Result<()> {
        let mut rules = self.shared.rules.subscribe();
        // The rules may have changed since the request began.
        rules.mark_changed();
        loop {
            let data = tokio::select! {
                data = source.read() => data?,
                _ = rules.changed() => {
                    // An idle direction can also be closed.
                    if self.fault() == Some(Fault::HalfClose(direction)) {
                        target.lock().await.shutdown().await?;
                    }
                    continue;
                }
            };
            if data.is_empty() {
                return Ok(());
            }
            if direction == Direction::ToClient && self.upgrade.borrow().is_none() {
                // Heads of answers arrive in one piece on loopback; a longer wait is not worth its code.
                self.upgrade.send_replace(status(&data));
            }
            self.pass(target, direction, data).await?;
        }
    }

    /// Writes `data` as the fault of the active request permits.
    async fn pass(
        &self,
        target: &AsyncMutex<OwnedWriteHalf>,
        direction: Direction,
        data: Vec<u8>,
    ) -> io::Result<()> {
        let mut rules = self.shared.rules.subscribe();
        let mut left = &data[..];
        while !left.is_empty() {
            rules.mark_unchanged();
            let mut size = left.len();
            match self.fault() {
                Some(Fault::Stall(stalled)) if stalled == direction => {
                    rules.changed().await.map_err(io::Error::other)?;
                    continue;
                }
                Some(Fault::HalfClose(closed)) if closed == direction => {
                    // Data that arrives later is dropped.
                    return target.lock().await.shutdown().await;
                }
                Some(Fault::Slow { bytes, interval }) if direction == Direction::ToClient => {
                    tokio::select! {
                        () = tokio::time::sleep(interval) => size = bytes.clamp(1, size),
                        _ = rules.changed() => continue,
                    }
                }
                Some(Fault::CutAfter(limit)) if direction == Direction::ToClient => {
                    let permitted = limit.saturating_sub(self.answered(0));
                    if permitted <= size {
                        target.lock().await.write_all(&left[..permitted]).await?;
                        return Err(io::ErrorKind::ConnectionReset.into());
                    }
                }
                _ => {}
            }
            let (piece, rest) = left.split_at(size);
            target.lock().await.write_all(piece).await?;
            if direction == Direction::ToClient {
                self.answered(size);
            }
            left = rest;
        }
        Ok(())
    }

    /// Adds to the number of bytes of the answer and returns it.
    fn answered(&self, more: usize) -> usize {
        self.active.lock().map_or(0, |mut active| {
            active.answered += more;
            active.answered
        })
    }
}

impl Shared {
    /// The fault of the first rule for a request if that rule counts its requests.
    fn take_fault(&self, method: &str, target: &str) -> Option<Fault> {
        let mut fault = None;
        // No wake-up: what the other connections see does not change.
        self.rules.send_if_modified(|rules| {
            let mut applies = rules
                .iter_mut()
                .filter(|rule| rule.left != Some(0) && rule.applies(method, target));
            if let Some(rule) = applies.next()
                && let Some(left) = &mut rule.left
            {
                *left -= 1;
                fault = Some(rule.fault);
            }
            false
        });
        fault
    }
}
