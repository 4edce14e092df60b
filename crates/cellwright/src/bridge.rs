//! The way back: code in a kernel calls our verbs over a door on the loopback address.
//!
//! `POST /v1/tool` with a bearer token that belongs to one session. A call is answered only while a cell
//! of that session runs, and ends with it. The verb runs as a process of its own, this very binary; only
//! verbs that lead to no other session can be called.

mod call;
mod command;
pub(crate) mod door;
pub(crate) mod entrance;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cellwright_kernel::Stop;
use tokio::sync::{Semaphore, oneshot, watch};

/// How many calls of one session are carried out at once; others wait.
const AT_ONCE: usize = 16;

/// The server and those whom it knows. Ends when it is dropped.
pub(crate) struct Bridge {
    url: String,
    guests: Arc<Guests>,
    /// Dropped, it ends the server.
    _server: oneshot::Sender<()>,
}

/// What a session's calls get.
pub(crate) struct Door {
    /// Its name.
    pub(crate) session: String,
    /// The environment of the verbs.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Where they run, if the kernel does not say.
    pub(crate) cwd: PathBuf,
}

impl Door {
    /// For a session whose kernel starts there with these variables.
    pub(crate) fn new(session: &str, env: &[(OsString, OsString)], cwd: &Path) -> Self {
        Self {
            session: session.to_owned(),
            env: env.to_vec(),
            cwd: cwd.to_owned(),
        }
    }
}

/// Lets one session in; dropped, its token is worth nothing.
pub(crate) struct Pass {
    guest: Arc<Guest>,
    guests: Arc<Guests>,
}

/// A cell runs: calls are answered until this is dropped.
pub(crate) struct Open {
    guest: Arc<Guest>,
    number: u64,
}

/// A session that may call.
struct Guest {
    token: String,
    door: Door,
    /// The cell that runs, and when it must end.
    cell: watch::Sender<Option<Running>>,
    /// How many there were: a call must not take the next one for its own.
    cells: AtomicU64,
    room: Semaphore,
}

#[derive(Clone)]
struct Running {
    number: u64,
    stop: Stop,
}

#[derive(Default)]
struct Guests(Mutex<Vec<Arc<Guest>>>);

impl Guests {
    /// Whoever has this token. All are compared, each in the same time whatever is wrong with it.
    fn with_token(&self, token: &[u8]) -> Option<Arc<Guest>> {
        let guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for guest in guests.iter() {
            if same(guest.token.as_bytes(), token) {
                found = Some(Arc::clone(guest));
            }
        }
        found
    }
}

/// Compares without telling by the time it takes where the first difference is.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let pairs = left.iter().zip(right);
    let difference = pairs.fold(0, |all, (one, other)| {
        std::hint::black_box(all | (one ^ other))
    });
    difference == 0
}

impl Bridge {
    /// Opens the door, on a port that the system chooses.
    #[expect(clippy::unused_async, reason = "it belongs to a runtime")]
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let guests = Arc::new(Guests::default());
        let (server, end) = oneshot::channel::<()>();
        tokio::spawn(door::serve(listener, Arc::clone(&guests), end));
        Ok(Self {
            url,
            guests,
            _server: server,
        })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Lets a session in.
    pub(crate) fn admit(&self, door: Door) -> io::Result<Pass> {
        let guest = Arc::new(Guest {
            token: random()?,
            door,
            cell: watch::Sender::new(None),
            cells: AtomicU64::new(0),
            room: Semaphore::new(AT_ONCE),
        });
        let mut guests = self.guests.0.lock().unwrap_or_else(PoisonError::into_inner);
        guests.push(Arc::clone(&guest));
        drop(guests);
        Ok(Pass {
            guest,
            guests: Arc::clone(&self.guests),
        })
    }
}

impl Pass {
    /// What a call must carry.
    pub(crate) fn token(&self) -> &str {
        &self.guest.token
    }

    /// A cell begins: calls are answered until the guard is dropped or the stop is pulled.
    pub(crate) fn open(&self, stop: &Stop) -> Open {
        let number = self.guest.cells.fetch_add(1, Ordering::Relaxed);
        let stop = stop.clone();
        self.guest.cell.send_replace(Some(Running { number, stop }));
        Open {
            guest: Arc::clone(&self.guest),
            number,
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut guests = self.guests.0.lock().unwrap_or_else(PoisonError::into_inner);
        guests.retain(|guest| !Arc::ptr_eq(guest, &self.guest));
        drop(guests);
        self.guest.cell.send_replace(None);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let number = self.number;
        self.guest.cell.send_if_modified(|cell| {
            let ours = cell
                .as_ref()
                .is_some_and(|running| running.number == number);
            if ours {
                *cell = None;
            }
            ours
        });
    }
}

/// Something that nobody can guess.
pub(crate) fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests;
