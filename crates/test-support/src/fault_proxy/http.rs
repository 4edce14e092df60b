//! The boundaries of HTTP/1.1 requests in a stream of bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Largest head of a request or an answer that the proxy accepts.
const HEAD_LIMIT: usize = 256 * 1024;
const HEADERS_MAX: usize = 128;

/// The head of a request.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// The head as it was received, with the empty line.
    pub(super) bytes: Vec<u8>,
    pub(super) method: String,
    pub(super) target: String,
    pub(super) body: Body,
    /// The client asks for another protocol on this connection.
    pub(super) upgrade: bool,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes are left.
    Length(usize),
    Chunked,
}

/// A stream with the bytes that were read from it and belong to what follows.
pub(super) struct Reader<R> {
    stream: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(stream: R) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Reads once. Returns false at the end of the stream.
    async fn fill(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }

    /// The next bytes, empty at the end of the stream. Loses nothing if it is dropped while it waits.
    pub(super) async fn read(&mut self) -> io::Result<Vec<u8>> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    /// The bytes of the next head, `None` at the end of the stream.
    async fn head_bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let rest = self.buffer.split_off(end + 4);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            if self.buffer.len() > HEAD_LIMIT {
                return Err(invalid("the head is too long"));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next request, `None` at the end of the stream.
    pub(super) async fn request(&mut self) -> io::Result<Option<Head>> {
        match self.head_bytes().await? {
            Some(bytes) => parse_request(bytes).map(Some),
            None => Ok(None),
        }
    }

    /// The next piece of a body, `None` after its last one. Chunked bodies keep their framing.
    pub(super) async fn body(&mut self, body: &mut Body) -> io::Result<Option<Vec<u8>>> {
        match body {
            Body::Length(0) => Ok(None),
            Body::Length(left) => {
                if self.buffer.is_empty() && !self.fill().await? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let count = self.buffer.len().min(*left);
                *left -= count;
                let rest = self.buffer.split_off(count);
                Ok(Some(std::mem::replace(&mut self.buffer, rest)))
            }
            Body::Chunked => loop {
                if let httparse::Status::Complete((line, size)) =
                    httparse::parse_chunk_size(&self.buffer).map_err(|_| invalid("chunk size"))?
                {
                    let size = usize::try_from(size).map_err(|_| invalid("chunk size"))?;
                    // Data and its line end. Trailers are not supported: nothing here sends them.
                    let whole = line + size + 2;
                    while self.buffer.len() < whole {
                        if !self.fill().await? {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                    }
                    if size == 0 {
                        *body = Body::Length(0);
                    }
                    let rest = self.buffer.split_off(whole);
                    return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
                }
                if !self.fill().await? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            },
        }
    }
}

fn parse_request(bytes: Vec<u8>) -> io::Result<Head> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(&bytes).map_err(|_| invalid("the head"))?;
    let header = |name: &str| {
        let mut all = request.headers.iter();
        let found = all.find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(found.value).into_owned())
    };
    let is_chunked =
        header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let length = header("content-length").and_then(|value| value.trim().parse().ok());
    let method = request.method.unwrap_or_default().to_owned();
    let target = request.path.unwrap_or_default().to_owned();
    let upgrade = header("upgrade").is_some();
    Ok(Head {
        method,
        target,
        upgrade,
        body: if is_chunked {
            Body::Chunked
        } else {
            Body::Length(length.unwrap_or(0))
        },
        bytes,
    })
}

/// The status of an answer whose first bytes are `start`; `None` if more bytes are needed.
pub(super) fn status(start: &[u8]) -> Option<u16> {
    let digits = start.get(9..12)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// An answer of the proxy itself.
pub(super) fn answer(status: u16) -> Vec<u8> {
    let reason = match status {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Fault",
    };
    let body = format!("{{\"reason\": \"{reason}\", \"message\": \"from the fault proxy\"}}");
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::{Body, Reader, status};

    #[tokio::test]
    async fn requests_are_separated() {
        let text = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST /b HTTP/1.1\r\n\
            Transfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n0\r\n\r\nGET /c HTTP/1.1\r\nUpgrade: websocket\r\n\r\nrest";
        let mut reader = Reader::new(&text[..]);
        let mut seen = Vec::new();
        while let Some(mut head) = reader.request().await.unwrap() {
            let mut body = Vec::new();
            while let Some(piece) = reader.body(&mut head.body).await.unwrap() {
                body.extend(piece);
            }
            seen.push((head.target, String::from_utf8(body).unwrap(), head.upgrade));
            if head.upgrade {
                break;
            }
        }
        let seen: Vec<_> = seen.iter().map(|(a, b, c)| (&a[..], &b[..], *c)).collect();
        assert_eq!(
            seen,
            [
                ("/a", "abc", false),
                ("/b", "4\r\nwxyz\r\n0\r\n\r\n", false),
                ("/c", "", true)
            ]
        );
        assert_eq!(reader.read().await.unwrap(), b"rest");
        assert_eq!(reader.read().await.unwrap(), b"");
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_an_error() {
        let mut reader = Reader::new(&b"ab"[..]);
        let mut body = Body::Length(3);
        assert_eq!(reader.body(&mut body).await.unwrap().unwrap(), b"ab");
        assert!(reader.body(&mut body).await.is_err());
    }

    #[test]
    fn the_status_needs_twelve_bytes() {
        assert_eq!(status(b"HTTP/1.1 10"), None);
        assert_eq!(status(b"HTTP/1.1 101 "), Some(101));
    }
}
