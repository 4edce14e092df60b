//! [`HeldPorts`]: five ports that a kernel will find free.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::connection::Ports;

/// Five ports of the loopback interface that are held for a kernel.
///
/// A port that was free a moment ago may be somebody else's when the kernel gets to it. So a socket of
/// ours stays on each, one that does not listen: on Linux a kernel can have the port nevertheless
/// (`ZeroMQ` asks for that, with `SO_REUSEADDR`), while nobody who asks for any free port gets it. On
/// other systems a kernel could not; there the ports are free, as they are in Jupyter, and whoever starts
/// a kernel must be ready to try others.
///
/// Until the kernel listens, whoever connects is refused. Dropping this lets the ports go.
#[derive(Debug)]
pub struct HeldPorts {
    ports: Ports,
    _sockets: Vec<OwnedFd>,
}

impl HeldPorts {
    /// Whether ports can be held on this system, or only be found.
    pub const HOLDS: bool = cfg!(target_os = "linux");

    /// Takes five ports that nobody has.
    pub fn take() -> io::Result<Self> {
        let mut sockets = Vec::with_capacity(5);
        let mut next = || {
            let (port, socket) = take_one()?;
            sockets.push(socket);
            io::Result::Ok(port)
        };
        let ports = Ports {
            shell: next()?,
            iopub: next()?,
            stdin: next()?,
            control: next()?,
            hb: next()?,
        };
        if !Self::HOLDS {
            sockets.clear();
        }
        Ok(Self {
            ports,
            _sockets: sockets,
        })
    }

    /// Which they are.
    pub fn ports(&self) -> Ports {
        self.ports
    }
}

fn take_one() -> io::Result<(u16, OwnedFd)> {
    let socket = stream_socket()?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((address.port(), socket))
}

/// A socket that no child of ours inherits.
#[cfg(not(target_vendor = "apple"))]
fn stream_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

#[cfg(target_vendor = "apple")]
fn stream_socket() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}
