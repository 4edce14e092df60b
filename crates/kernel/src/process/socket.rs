//! The socket between an owner and a supervisor: one byte per command, one line per message.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::ChildPipes;
use super::child_command::{LENGTH_SIZE, ReceivedCommand};

pub(super) const INTERRUPT: u8 = b'i';
pub(super) const TERMINATE: u8 = b't';
pub(super) const KILL: u8 = b'k';

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// The process has ended, and its exit status is unknown.
    pub const UNKNOWN: Self = Self {
        code: None,
        signal: None,
    };
}

/// A message of a supervisor to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SupervisorMessage {
    Started {
        pid: u32,
    },
    Failed {
        errno: i32,
    },
    Exited(Exit),
    /// The supervisor ended before the child. The child has ended since, with all its descendants.
    Lost,
}

impl SupervisorMessage {
    fn to_line(self) -> String {
        match self {
            Self::Started { pid } => format!("started {pid}\n"),
            Self::Failed { errno } => format!("failed {errno}\n"),
            Self::Exited(Exit {
                signal: Some(signal),
                ..
            }) => format!("signal {signal}\n"),
            Self::Exited(Exit { code, .. }) => format!("code {}\n", code.unwrap_or(-1)),
            Self::Lost => "lost 0\n".to_owned(),
        }
    }

    fn from_line(line: &str) -> Option<Self> {
        let (word, number) = line.trim_end().split_once(' ')?;
        let number: i32 = number.parse().ok()?;
        match word {
            "started" => Some(Self::Started {
                pid: u32::try_from(number).ok()?,
            }),
            "failed" => Some(Self::Failed { errno: number }),
            "signal" => Some(Self::Exited(Exit {
                code: None,
                signal: Some(number),
            })),
            "code" => Some(Self::Exited(Exit {
                code: Some(number),
                signal: None,
            })),
            "lost" => Some(Self::Lost),
            _ => None,
        }
    }
}

/// Sends a message of the supervisor to its owner, with descriptors. A gone owner is not an error: the
/// closed socket ends the child anyway.
pub(super) fn send_message(
    socket: impl AsFd,
    message: SupervisorMessage,
    descriptors: &[BorrowedFd<'_>],
) {
    let line = message.to_line();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let _sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(line.as_bytes())],
        &mut control,
        SendFlags::NOSIGNAL,
    );
}

/// Receives the command of the child and the descriptor of its directory, if that is held. `None` if the owner is gone.
pub(super) fn receive_command(
    owner: impl AsFd,
) -> io::Result<Option<(ReceivedCommand, Option<OwnedFd>)>> {
    let mut bytes = Vec::new();
    let mut directory = None;
    let mut length = None;
    loop {
        let mut block = [0; 16 * 1024];
        let mut descriptors = Vec::new();
        let wanted = length.map_or(LENGTH_SIZE, |length: usize| length - bytes.len());
        // No byte of what follows the command, which are commands of another kind.
        let limit = wanted.min(block.len());
        match receive(owner.as_fd(), &mut block[..limit], &mut descriptors) {
            Ok(0) => return Ok(None),
            Ok(count) => bytes.extend_from_slice(&block[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        directory = directory.or(descriptors.pop());
        if length.is_none()
            && let Ok(number) = <[u8; LENGTH_SIZE]>::try_from(bytes.as_slice())
        {
            let number = usize::try_from(u64::from_le_bytes(number)).map_err(io::Error::other)?;
            length = Some(number);
            bytes.clear();
        } else if length == Some(bytes.len()) {
            let command = ReceivedCommand::decode(&bytes).ok_or(io::ErrorKind::InvalidData)?;
            return Ok(Some((command, directory)));
        }
    }
}

/// The owner's end of the socket.
#[derive(Debug)]
pub(super) struct SupervisorSocket {
    socket: UnixStream,
    received: Vec<u8>,
}

impl SupervisorSocket {
    /// Both ends of a socket pair; the second is for the supervisor.
    pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
        Ok(rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?)
    }

    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            received: Vec::new(),
        })
    }

    /// Sends an encoded command, with the descriptor of its directory if that is held.
    pub(super) async fn send_command(
        &mut self,
        mut bytes: &[u8],
        mut directory: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let send = || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let descriptors = directory.as_slice();
                if !descriptors.is_empty() {
                    control.push(SendAncillaryMessage::ScmRights(descriptors));
                }
                let parts = [IoSlice::new(bytes)];
                let flags = SendFlags::NOSIGNAL;
                Ok(rustix::net::sendmsg(
                    &self.socket,
                    &parts,
                    &mut control,
                    flags,
                )?)
            };
            let sent = self.socket.async_io(Interest::WRITABLE, send).await?;
            directory = None;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Receives the first message, with the owner's ends of the child's pipes if the child was started.
    pub(super) async fn receive_started(
        &mut self,
    ) -> io::Result<(SupervisorMessage, Option<ChildPipes>)> {
        let mut bytes = [0; 64];
        let mut descriptors = Vec::new();
        let count = self
            .socket
            .async_io(Interest::READABLE, || {
                receive(self.socket.as_fd(), &mut bytes, &mut descriptors)
            })
            .await?;
        self.received.extend_from_slice(&bytes[..count]);
        let mut descriptors = descriptors.into_iter();
        let message = self.next_line().ok_or(io::ErrorKind::UnexpectedEof)?;
        let pipes = match (descriptors.next(), descriptors.next(), descriptors.next()) {
            (Some(channel), Some(stdout), Some(stderr)) => Some(ChildPipes {
                channel,
                stdout,
                stderr,
            }),
            _ => None,
        };
        Ok((message, pipes))
    }

    /// Receives the next message; `None` when the supervisor is gone. Cancel-safe.
    pub(super) async fn next_message(&mut self) -> io::Result<Option<SupervisorMessage>> {
        loop {
            if let Some(message) = self.next_line() {
                return Ok(Some(message));
            }
            self.socket.readable().await?;
            let mut buffer = [0; 64];
            match self.socket.try_read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a command. One byte always fits into the buffer, and a gone supervisor needs no commands.
    pub(super) fn send(&self, command: u8) {
        let _sent = self.socket.try_write(&[command]);
    }

    /// Lets the other side see the socket closed. Its messages can still be received.
    pub(super) fn shut_down(&self) {
        // Fails if the other side is gone.
        let _shut_down = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    fn next_line(&mut self) -> Option<SupervisorMessage> {
        let end = memchr::memchr(b'\n', &self.received)?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        SupervisorMessage::from_line(&String::from_utf8_lossy(&line))
    }
}

/// Receives bytes, and descriptors that were sent with them.
fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok(message.bytes)
}
