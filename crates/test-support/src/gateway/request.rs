//! A small blocking HTTP client.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

/// Where requests go.
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) token: Option<String>,
}

/// Status and body of an answer.
pub(super) type Answer = (u16, String);

/// Sends one request and reads the whole answer. HTTP/1.0, so that the answer ends with the connection.
pub(super) fn send(target: &Target, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    let mut head = format!("{method} {path} HTTP/1.0\r\nHost: {}\r\n", target.address);
    if let Some(token) = &target.token {
        head += &format!("Authorization: token {token}\r\n");
    }
    if !body.is_empty() {
        head += "Content-Type: application/json\r\n";
    }
    head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());

    let stream = TcpStream::connect_timeout(&target.address, REPLY_TIMEOUT)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    let answer = match &target.tls {
        None => exchange(stream, &head)?,
        Some(config) => {
            let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
            let connection = ClientConnection::new(Arc::clone(config), name);
            let connection = connection.map_err(io::Error::other)?;
            exchange(StreamOwned::new(connection, stream), &head)?
        }
    };
    let text = String::from_utf8_lossy(&answer);
    let status = text.get(9..12).and_then(|digits| digits.parse().ok());
    let (Some(status), Some((_, body))) = (status, text.split_once("\r\n\r\n")) else {
        return Err(io::Error::other(format!("not an answer: {text}")));
    };
    Ok((status, body.to_owned()))
}

fn exchange(mut stream: impl Read + Write, head: &str) -> io::Result<Vec<u8>> {
    stream.write_all(head.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Servers close TLS connections without a last message.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(answer),
    }
}
