//! HTTP/1.1 on one connection, with a deadline: what a Jupyter server on this machine needs.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::endpoint::Stream;

/// Size in bytes of the largest head of a reply.
const HEAD_SIZE_LIMIT: usize = 32 * 1024;

/// Size in bytes of the largest body of a reply.
const BODY_SIZE_LIMIT: usize = 4 * 1024 * 1024;

/// The number of headers of a reply.
const HEADERS_MAX: usize = 64;

/// A request.
pub(crate) struct Request<'r> {
    pub(crate) method: &'r str,
    /// Path and query, percent-encoded.
    pub(crate) target: &'r str,
    pub(crate) body: Option<&'r str>,
}

/// A reply.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// A connection that sends one request after another.
pub(crate) struct Connection {
    stream: Stream,
    /// The headers of all requests, each with its line end.
    headers: String,
    deadline: Instant,
    /// Received bytes that belong to no reply yet.
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: Stream, headers: String, deadline: Instant) -> io::Result<Self> {
        if let Stream::Tcp(stream) = &stream {
            stream.set_nodelay(true)?;
        }
        Ok(Self {
            stream,
            headers,
            deadline,
            buffer: Vec::new(),
        })
    }

    /// Sends a request and receives its reply.
    pub(crate) fn send(&mut self, request: &Request<'_>) -> io::Result<Reply> {
        let Request {
            method,
            target,
            body,
        } = request;
        let mut text = format!("{method} {target} HTTP/1.1\r\n{}", self.headers);
        if let Some(body) = body {
            let length = body.len();
            text += &format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        } else {
            text += "\r\n";
        }
        self.write_all(text.as_bytes())?;
        self.receive()
    }

    fn receive(&mut self) -> io::Result<Reply> {
        let (status, body_size) = loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut head = httparse::Response::new(&mut headers);
            let parsed = head.parse(&self.buffer);
            match parsed.map_err(|_| invalid("the reply is not HTTP"))? {
                httparse::Status::Complete(size) => {
                    let status = head.code.unwrap_or_default();
                    let body_size = body_size(status, head.headers)?;
                    self.buffer.drain(..size);
                    break (status, body_size);
                }
                httparse::Status::Partial if self.buffer.len() > HEAD_SIZE_LIMIT => {
                    return Err(invalid("the head of the reply is too large"));
                }
                httparse::Status::Partial => self.read_more()?,
            }
        };
        while self.buffer.len() < body_size {
            self.read_more()?;
        }
        let body = self.buffer.drain(..body_size).collect();
        Ok(Reply { status, body })
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        let remaining = self.remaining()?;
        let count = match &mut self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(remaining))?;
                stream.read(&mut chunk)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(remaining))?;
                stream.read(&mut chunk)
            }
        }
        .map_err(timed_out)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let remaining = self.remaining()?;
        match &mut self.stream {
            Stream::Tcp(stream) => {
                stream.set_write_timeout(Some(remaining))?;
                stream.write_all(bytes)
            }
            Stream::Unix(stream) => {
                stream.set_write_timeout(Some(remaining))?;
                stream.write_all(bytes)
            }
        }
        .map_err(timed_out)
    }

    fn remaining(&self) -> io::Result<Duration> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(remaining)
    }
}

/// The size in bytes of the body of a reply.
fn body_size(status: u16, headers: &[httparse::Header<'_>]) -> io::Result<usize> {
    if status == 204 || status == 304 {
        return Ok(0);
    }
    let find = |name: &str| {
        headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
    };
    let size = find("content-length")
        .filter(|_| find("transfer-encoding").is_none())
        .and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok())
        .ok_or_else(|| invalid("the reply has no length"))?;
    if size > BODY_SIZE_LIMIT {
        return Err(invalid("the reply is too large"));
    }
    Ok(size)
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

/// A socket reports its timeout as an operation that would block.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn reply_to(bytes: &[u8]) -> io::Result<Reply> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(bytes).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        let headers = "Host: localhost\r\n".to_owned();
        let mut connection = Connection::new(Stream::Unix(ours), headers, deadline).unwrap();
        connection.send(&Request {
            method: "GET",
            target: "/",
            body: None,
        })
    }

    #[test]
    fn replies_have_a_status_and_a_body() {
        let reply = reply_to(b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\n\r\n{}rest").unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (200, &b"{}"[..]));
        let reply = reply_to(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        assert_eq!((reply.status, reply.body.len()), (204, 0));
    }

    #[test]
    fn replies_that_are_not_http_or_too_large_are_errors() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n", "x".repeat(HEAD_SIZE_LIMIT));
        let many = format!(
            "HTTP/1.1 200 OK\r\n{}\r\n",
            "X: x\r\n".repeat(HEADERS_MAX + 1)
        );
        for bytes in [
            "",
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            &long,
            &many,
        ] {
            assert!(reply_to(bytes.as_bytes()).is_err(), "{bytes}");
        }
    }

    #[test]
    fn a_server_that_never_replies_times_out() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let deadline = Instant::now() + Duration::from_millis(20);
        let mut connection = Connection::new(Stream::Unix(ours), String::new(), deadline).unwrap();
        let request = Request {
            method: "GET",
            target: "/",
            body: None,
        };
        let error = connection.send(&request).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
