//! Frames: one JSON object on a line; if it has a member `n`, that many raw bytes follow the line.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum length of a line in bytes.
pub const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// Maximum size of a payload in bytes. It is larger than a line because replies carry outputs.
const PAYLOAD_LIMIT: usize = 1024 * 1024 * 1024;

/// Payloads up to this size in bytes are written together with their line.
const SINGLE_WRITE_LIMIT: usize = 16 * 1024;

/// Size of one read in bytes.
const READ_SIZE: usize = 16 * 1024;

/// One message from a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The JSON object.
    line: Vec<u8>,
    /// The raw bytes after the line.
    pub payload: Vec<u8>,
}

/// A failure to read or write a frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The connection ended within a frame.
    #[error("the connection ended within a message")]
    Truncated,
    #[error("a message is not a JSON object: {0}")]
    InvalidJson(#[source] serde_json::Error),
    #[error("a message is larger than {} MiB", LINE_LIMIT / 1024 / 1024)]
    TooLarge,
}

/// The member that the reader needs to find the end of a frame.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    n: u64,
}

impl Frame {
    /// Parses the object as a `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        serde_json::from_slice(&self.line).map_err(FrameError::InvalidJson)
    }

    /// Parses the object without a schema.
    pub fn value(&self) -> Result<Value, FrameError> {
        self.parse()
    }
}

/// Reads frames. Buffers incomplete frames, so [`next`] may be dropped and called again at any time.
///
/// [`next`]: FrameReader::next
#[derive(Debug)]
pub struct FrameReader<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer before this offset are consumed.
    start: usize,
    /// No line ends between `start` and this offset.
    searched: usize,
    /// A line whose payload is incomplete, and the size of the payload in bytes.
    pending: Option<(Vec<u8>, usize)>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            pending: None,
        }
    }

    /// The stream that the frames are read from.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Reads the next frame. Returns `None` if the peer has closed the connection after a complete one. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(Some(frame));
            }
            self.reserve();
            if self.inner.read_buf(&mut self.buffer).await? == 0 {
                let is_complete = self.pending.is_none() && self.start == self.buffer.len();
                return if is_complete {
                    Ok(None)
                } else {
                    Err(FrameError::Truncated)
                };
            }
        }
    }

    /// Takes a complete frame from the buffer.
    fn take_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.pending.is_none() {
            let Some(end) = self.line_end() else {
                let is_too_long = self.buffer.len() - self.start > LINE_LIMIT;
                return if is_too_long {
                    Err(FrameError::TooLarge)
                } else {
                    Ok(None)
                };
            };
            if end - self.start > LINE_LIMIT {
                return Err(FrameError::TooLarge);
            }
            let line = self.buffer[self.start..end].to_vec();
            self.start = end + 1;
            self.searched = self.start;
            let envelope: Envelope = read_envelope(&line)?;
            let count = usize::try_from(envelope.n).unwrap_or(usize::MAX);
            if count > PAYLOAD_LIMIT {
                return Err(FrameError::TooLarge);
            }
            self.pending = Some((line, count));
        }
        let available = self.buffer.len() - self.start;
        let Some((line, count)) = self.pending.take_if(|(_, count)| *count <= available) else {
            return Ok(None);
        };
        let payload = self.buffer[self.start..self.start + count].to_vec();
        self.start += count;
        self.searched = self.start;
        Ok(Some(Frame { line, payload }))
    }

    fn line_end(&mut self) -> Option<usize> {
        let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
        let end = found.map(|offset| self.searched + offset);
        self.searched = end.unwrap_or(self.buffer.len());
        end
    }

    /// Reserves space for the next read. The buffer grows with received bytes, not with announced sizes.
    fn reserve(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            // The space of one large frame is not kept.
            self.buffer.shrink_to(4 * READ_SIZE);
        } else {
            self.buffer.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        self.buffer.reserve(READ_SIZE);
    }
}

/// Parses the envelope. Rejects arrays explicitly, because `Envelope` would accept them.
fn read_envelope(line: &[u8]) -> Result<Envelope, FrameError> {
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        let error = serde::de::Error::custom("it is an array");
        return Err(FrameError::InvalidJson(error));
    }
    serde_json::from_slice(line).map_err(FrameError::InvalidJson)
}

/// Writes frames. A write that is dropped before its end leaves an incomplete frame, and the connection is unusable.
#[derive(Debug)]
pub struct FrameWriter<W> {
    inner: W,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub fn new(inner: W) -> Self {
        Self { inner }
    }

    /// Sends a JSON object.
    pub async fn send(&mut self, head: &impl Serialize) -> Result<(), FrameError> {
        let bytes = encode(head, &[])?;
        Ok(self.inner.write_all(&bytes).await?)
    }

    /// Sends a JSON object and the raw bytes that follow it. Sets the member `n` of the object.
    pub async fn send_with(
        &mut self,
        head: &impl Serialize,
        payload: &[u8],
    ) -> Result<(), FrameError> {
        let mut bytes = encode(head, payload)?;
        if payload.len() <= SINGLE_WRITE_LIMIT {
            // One write wakes the reader only once.
            bytes.extend_from_slice(payload);
            return Ok(self.inner.write_all(&bytes).await?);
        }
        self.inner.write_all(&bytes).await?;
        Ok(self.inner.write_all(payload).await?)
    }
}

/// Encodes the line of a frame.
fn encode(head: &impl Serialize, payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    let mut bytes = if payload.is_empty() {
        serde_json::to_vec(head).map_err(FrameError::InvalidJson)?
    } else {
        let mut value = serde_json::to_value(head).map_err(FrameError::InvalidJson)?;
        if let Value::Object(members) = &mut value {
            members.insert("n".to_owned(), payload.len().into());
        }
        serde_json::to_vec(&value).map_err(FrameError::InvalidJson)?
    };
    if bytes.len() > LINE_LIMIT || payload.len() > PAYLOAD_LIMIT {
        return Err(FrameError::TooLarge);
    }
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    /// Reads frames from bytes that arrive in these pieces.
    async fn read_pieces(pieces: Vec<Vec<u8>>) -> Vec<Result<Frame, String>> {
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let mut reader = FrameReader::new(far);
        let mut frames = Vec::new();
        for piece in pieces {
            near.write_all(&piece).await.unwrap();
            // Cancelled as soon as there is nothing to read.
            while let Ok(next) = tokio::select! {
                biased;
                next = reader.next() => Ok(next),
                () = std::future::ready(()) => Err(()),
            } {
                match next {
                    Ok(Some(frame)) => frames.push(Ok(frame)),
                    Ok(None) => return frames,
                    Err(error) => {
                        frames.push(Err(error.to_string()));
                        return frames;
                    }
                }
            }
        }
        drop(near);
        while let Some(next) = reader.next().await.transpose() {
            let failed = next.is_err();
            frames.push(next.map_err(|error| error.to_string()));
            if failed {
                break;
            }
        }
        frames
    }

    #[test]
    fn frames_arrive_as_they_were_sent() {
        let mut bytes = Vec::new();
        run(async {
            let mut writer = FrameWriter::new(&mut bytes);
            writer.send(&json!({"do": "status"})).await.unwrap();
            writer
                .send_with(&json!({"data": true}), b"a\n{\0")
                .await
                .unwrap();
            writer.send(&json!({"end": "line\nbreak"})).await.unwrap();
        });
        let frames = run(read_pieces(vec![bytes]));
        let frames: Vec<Frame> = frames.into_iter().map(Result::unwrap).collect();
        assert_eq!(frames[0].value().unwrap(), json!({"do": "status"}));
        assert_eq!(frames[1].payload, b"a\n{\0");
        assert_eq!(frames[2].value().unwrap(), json!({"end": "line\nbreak"}));
    }

    #[test]
    fn invalid_frames_are_errors() {
        for (bytes, message) in [
            (&b"GET / HTTP/1.1\r\n"[..], "not a JSON object"),
            (b"[1]\n", "not a JSON object"),
            (b"7\n", "not a JSON object"),
            (b"\n", "not a JSON object"),
            (b"{\"n\":-1}\n", "not a JSON object"),
            (b"{\"n\":99999999999}\n", "larger than"),
            (b"{\"half\":", "within a message"),
            (b"{\"n\":5}\n123", "within a message"),
            (b"\xff\xfe\n", "not a JSON object"),
        ] {
            let frames = run(read_pieces(vec![bytes.to_vec()]));
            let error = frames.last().unwrap().as_ref().unwrap_err();
            assert!(error.contains(message), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn endless_line_is_rejected() {
        let endless = tokio::io::repeat(b'x');
        let error = run(FrameReader::new(endless).next()).unwrap_err();
        assert!(matches!(error, FrameError::TooLarge));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_split_gives_the_same_frames(
            sent in prop::collection::vec((".*", prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            garbage in prop::collection::vec(any::<u8>(), 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut bytes = Vec::new();
            run(async {
                let mut writer = FrameWriter::new(&mut bytes);
                for (text, payload) in &sent {
                    writer.send_with(&json!({"text": text}), payload).await.unwrap();
                }
            });
            bytes.extend(garbage);
            let whole = run(read_pieces(vec![bytes.clone()]));
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut from = 0;
            let mut pieces = Vec::new();
            for cut in cuts {
                pieces.push(bytes[from..cut].to_vec());
                from = cut;
            }
            prop_assert_eq!(&run(read_pieces(pieces)), &whole);
            let good = whole.iter().filter(|frame| frame.is_ok()).count();
            prop_assert!(good >= sent.len());
        }
    }
}
