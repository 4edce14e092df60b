//! [`ReservedPorts`]: five ports that are reserved for a kernel.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::connection::Ports;

/// Five ports of the loopback interface that are reserved for a kernel.
///
/// Another process may take a free port before the kernel binds it. So a socket that does not listen stays bound to each
/// port. On Linux a kernel can bind the port nevertheless, because `ZeroMQ` sets `SO_REUSEADDR`, while a process that requests
/// any free port does not get it. On other systems a kernel could not bind it. There the ports are only free, as in
/// Jupyter, and the caller must be ready to try others.
///
/// Connections are refused until the kernel listens. Dropping the value releases the ports.
#[derive(Debug)]
pub struct ReservedPorts {
    ports: Ports,
    _sockets: Vec<OwnedFd>,
}

impl ReservedPorts {
    /// Whether this system can reserve ports. Otherwise the ports are only free at the time of the call.
    pub const CAN_RESERVE: bool = cfg!(target_os = "linux");

    /// Reserves five free ports.
    pub fn reserve() -> io::Result<Self> {
        let mut sockets = Vec::with_capacity(5);
        let mut next = || {
            let (port, socket) = reserve_one()?;
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
        if !Self::CAN_RESERVE {
            sockets.clear();
        }
        Ok(Self {
            ports,
            _sockets: sockets,
        })
    }

    /// The port numbers.
    pub fn ports(&self) -> Ports {
        self.ports
    }
}

fn reserve_one() -> io::Result<(u16, OwnedFd)> {
    let socket = stream_socket()?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((address.port(), socket))
}

/// A socket that child processes do not inherit.
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
