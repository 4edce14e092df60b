//! [`SpoolingStore`]: large frames of Jupyter messages go to disk while they are received.

use std::io;

use crate::codec::{DELIMITER, PARTS_BEFORE_CONTENT};
use crate::frame::{Frame, FrameSpool, SpoolWriter};
use crate::frame_store::{FrameStore, FrameWriter};
use crate::signing::{SignatureBuilder, Signer};

/// How `msg_type` names a `stream` message in the JSON text of a header.
const STREAM_TYPE: &[u8] = br#""stream""#;

/// Spools large frames of Jupyter messages to disk while they are received. If the disk is full, the transport keeps
/// them in memory.
#[derive(Debug)]
pub struct SpoolingStore {
    /// Frames from this length on, in bytes, go to disk.
    threshold: usize,
    /// The same for frames of `stream` messages.
    stream_threshold: usize,
    /// Computes the signature of a message whose content goes to disk.
    signer: Option<Signer>,
    spool: FrameSpool,
}

impl SpoolingStore {
    /// A store that spools frames of at least `threshold` bytes.
    pub fn new(threshold: usize) -> Self {
        Self {
            threshold,
            stream_threshold: threshold,
            signer: None,
            spool: FrameSpool::default(),
        }
    }

    /// Sets another threshold for `stream` messages. Their text is passed on at once, while a display stays, so they
    /// may be larger before they go to disk.
    #[must_use]
    pub fn with_stream_threshold(mut self, threshold: usize) -> Self {
        self.stream_threshold = threshold;
        self
    }

    /// Sets the key of the connection. The signature of a message whose content goes to disk is then computed while the
    /// content is received, so that the codec does not read it again.
    #[must_use]
    pub fn with_signing_key(mut self, key: &str) -> Self {
        self.signer = Signer::new(key);
        self
    }

    /// The threshold for the next frame of the message that begins with these frames.
    fn threshold_after(&self, earlier: &[Frame]) -> usize {
        let delimiter = earlier.iter().position(is_delimiter);
        let header = delimiter.and_then(|at| earlier.get(at + 2));
        if header.is_some_and(is_stream_header) {
            self.stream_threshold
        } else {
            self.threshold
        }
    }

    /// The signature so far of the message that begins with these frames, if its content is the next frame.
    fn signature_before_content(&self, earlier: &[Frame]) -> Option<SignatureBuilder> {
        let signer = self.signer.as_ref()?;
        let delimiter = earlier.iter().position(is_delimiter)?;
        // The signature itself is not signed.
        let signed = earlier.get(delimiter + 2..)?;
        let is_in_memory = |frame: &Frame| matches!(frame, Frame::InMemory(_));
        // A frame on disk would have to be read first.
        if signed.len() != PARTS_BEFORE_CONTENT || !earlier.iter().all(is_in_memory) {
            return None;
        }
        let mut signature = signer.builder();
        for frame in signed {
            if let Frame::InMemory(bytes) = frame {
                signature.push(bytes);
            }
        }
        Some(signature)
    }
}

impl FrameStore for SpoolingStore {
    type Frame = Frame;
    type Writer = SpooledFrameWriter;

    #[inline]
    fn open(&mut self, earlier: &[Frame], length: usize) -> Option<SpooledFrameWriter> {
        if length < self.threshold.min(self.stream_threshold)
            || length < self.threshold_after(earlier)
        {
            return None;
        }
        let spool = self.spool.reserve(length as u64).ok()?;
        let signature = self.signature_before_content(earlier);
        Some(SpooledFrameWriter { spool, signature })
    }
}

fn is_delimiter(frame: &Frame) -> bool {
    matches!(frame, Frame::InMemory(bytes) if bytes == DELIMITER)
}

/// Whether a header is that of a `stream` message. The text is searched, not parsed: a wrong answer only moves the
/// threshold.
fn is_stream_header(header: &Frame) -> bool {
    let Frame::InMemory(header) = header else {
        return false;
    };
    header
        .windows(STREAM_TYPE.len())
        .any(|text| text == STREAM_TYPE)
}

/// A frame that is received to disk.
#[derive(Debug)]
pub struct SpooledFrameWriter {
    spool: SpoolWriter,
    /// The signature of its message, if the frame is the content.
    signature: Option<SignatureBuilder>,
}

impl FrameWriter for SpooledFrameWriter {
    type Frame = Frame;

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.spool.push(bytes)?;
        if let Some(signature) = &mut self.signature {
            signature.push(bytes);
        }
        Ok(())
    }

    fn read_back(&self) -> io::Result<Vec<u8>> {
        self.spool.read_back()
    }

    fn finish(self) -> Frame {
        let signature = self.signature.map(SignatureBuilder::finish);
        Frame::OnDisk(self.spool.finish(signature))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use bytes::Bytes;

    use super::*;
    use crate::zmtp::{Limits, Reader, ReceivedItem, Writer};

    /// The bytes of a message on a connection.
    async fn encoded(frames: &[Bytes]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).send(frames).await.unwrap();
        bytes
    }

    #[tokio::test]
    async fn a_frame_that_does_not_fit_on_the_disk_is_in_memory() {
        // Several chunks of the size that a reader passes to a store.
        let content = Bytes::from(vec![7; 3 * 512 * 1024]);
        let mut bytes = encoded(std::slice::from_ref(&content)).await;
        bytes.extend(encoded(&[Bytes::from_static(b"n")]).await);
        let full = File::options().read(true).write(true).open("/dev/full");
        let mut store = SpoolingStore::new(512 * 1024);
        store.spool = FrameSpool::with_file(full.unwrap());
        let mut reader = Reader::new(&bytes[..], Limits::default()).with_store(store);
        for expected in [content, Bytes::from_static(b"n")] {
            let Some(ReceivedItem::Message(frames)) = reader.next().await.unwrap() else {
                panic!("not a message");
            };
            let [Frame::InMemory(frame)] = &frames[..] else {
                panic!("not one frame in memory");
            };
            assert!(*frame == expected);
        }
    }

    #[tokio::test]
    async fn frames_of_stream_messages_have_their_own_threshold() {
        let is_on_disk = async |msg_type: &str, length: usize| {
            let header = format!(r#"{{"msg_id": "1", "msg_type": "{msg_type}"}}"#);
            let frames = [DELIMITER, b"signature", header.as_bytes(), b"{}", b"{}"];
            let mut frames: Vec<Bytes> = frames.into_iter().map(Bytes::copy_from_slice).collect();
            frames.push(vec![b'x'; length].into());
            let bytes = encoded(&frames).await;
            let store = SpoolingStore::new(1000).with_stream_threshold(2000);
            let mut reader = Reader::new(&bytes[..], Limits::default()).with_store(store);
            let Some(ReceivedItem::Message(frames)) = reader.next().await.unwrap() else {
                panic!("not a message");
            };
            matches!(frames.last(), Some(Frame::OnDisk(_)))
        };
        assert!(!is_on_disk("display_data", 999).await);
        assert!(is_on_disk("display_data", 1000).await);
        assert!(!is_on_disk("stream", 1999).await);
        assert!(is_on_disk("stream", 2000).await);
    }
}
