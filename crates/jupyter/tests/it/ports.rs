//! [`ReservedPorts`]: a kernel can bind them, and no other process gets them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{TcpListener, TcpStream};

use cellwright_jupyter::connection::Ports;
use cellwright_jupyter::ports::ReservedPorts;
use serde_json::json;

use crate::support::start_oracle;

fn numbers(ports: Ports) -> [u16; 5] {
    [
        ports.shell,
        ports.iopub,
        ports.stdin,
        ports.control,
        ports.hb,
    ]
}

#[test]
fn a_kernel_can_listen_on_reserved_ports() {
    let reserved = ReservedPorts::reserve().unwrap();
    let ports = numbers(reserved.ports());
    let urls = ports.map(|port| format!("tcp://127.0.0.1:{port}"));
    let mut kernel = start_oracle("bind", &json!({ "urls": urls }));
    let mut line = String::new();
    let mut answers = BufReader::new(kernel.stdout.take().unwrap());
    answers.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "\"listening\"");
    let connected = ports.map(|port| TcpStream::connect(("127.0.0.1", port)).unwrap());
    // Releasing the ports changes nothing for the kernel.
    drop(reserved);
    for port in ports {
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }
    drop(connected);
    drop(kernel.stdin.take());
    assert!(kernel.wait().unwrap().success());
}

#[test]
#[cfg(target_os = "linux")]
fn no_other_socket_gets_a_reserved_port() {
    let reserved: Vec<ReservedPorts> = (0..200)
        .map(|_| ReservedPorts::reserve().unwrap())
        .collect();
    let ports: BTreeSet<u16> = reserved
        .iter()
        .flat_map(|held| numbers(held.ports()))
        .collect();
    assert_eq!(ports.len(), 1000);
    let others: Vec<TcpListener> = (0..1000)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    for other in &others {
        assert!(!ports.contains(&other.local_addr().unwrap().port()));
    }
    // The local ports of connections are not reserved ones either.
    for other in &others {
        let stream = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        assert!(!ports.contains(&stream.local_addr().unwrap().port()));
    }
}

#[test]
fn connections_to_a_reserved_port_are_refused() {
    let reserved = ReservedPorts::reserve().unwrap();
    for port in numbers(reserved.ports()) {
        let error = TcpStream::connect(("127.0.0.1", port)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_port_is_free_after_its_release() {
    let bind = |port: u16| {
        let address = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port);
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        )
        .unwrap();
        rustix::net::bind(&socket, &address)
    };
    let reserved = ReservedPorts::reserve().unwrap();
    let ports = numbers(reserved.ports());
    for port in ports {
        assert_eq!(bind(port), Err(rustix::io::Errno::ADDRINUSE));
    }
    drop(reserved);
    // Another process may have bound one of them since, but hardly all.
    assert!(ports.into_iter().any(|port| bind(port).is_ok()));
}
