//! Held ports: a kernel can have them, and nobody else gets them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{TcpListener, TcpStream};

use cellwright_jupyter::connection::Ports;
use cellwright_jupyter::ports::HeldPorts;
use serde_json::json;

use crate::support::begin;

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
fn a_kernel_can_listen_on_ports_that_are_held() {
    let held = HeldPorts::take().unwrap();
    let ports = numbers(held.ports());
    let urls = ports.map(|port| format!("tcp://127.0.0.1:{port}"));
    let mut kernel = begin("bind", &json!({ "urls": urls }));
    let mut line = String::new();
    let mut answers = BufReader::new(kernel.stdout.take().unwrap());
    answers.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "\"listening\"");
    let connected = ports.map(|port| TcpStream::connect(("127.0.0.1", port)).unwrap());
    // Letting go changes nothing for the kernel.
    drop(held);
    for port in ports {
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }
    drop(connected);
    drop(kernel.stdin.take());
    assert!(kernel.wait().unwrap().success());
}

#[test]
#[cfg(target_os = "linux")]
fn nobody_gets_a_port_that_is_held() {
    let held: Vec<HeldPorts> = (0..200).map(|_| HeldPorts::take().unwrap()).collect();
    let ports: BTreeSet<u16> = held.iter().flat_map(|held| numbers(held.ports())).collect();
    assert_eq!(ports.len(), 1000);
    let others: Vec<TcpListener> = (0..1000)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    for other in &others {
        assert!(!ports.contains(&other.local_addr().unwrap().port()));
    }
    // Connections get ports of their own too.
    for other in &others {
        let stream = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        assert!(!ports.contains(&stream.local_addr().unwrap().port()));
    }
}

#[test]
fn nobody_answers_on_a_port_that_is_held() {
    let held = HeldPorts::take().unwrap();
    for port in numbers(held.ports()) {
        let error = TcpStream::connect(("127.0.0.1", port)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_port_is_free_once_it_is_let_go() {
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
    let held = HeldPorts::take().unwrap();
    let ports = numbers(held.ports());
    for port in ports {
        assert_eq!(bind(port), Err(rustix::io::Errno::ADDRINUSE));
    }
    drop(held);
    // Somebody else may have got one of them meanwhile, but hardly all.
    assert!(ports.into_iter().any(|port| bind(port).is_ok()));
}
