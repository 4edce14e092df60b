//! [`BacklogSpool`]: backlog items on disk, in an unnamed file.

use std::collections::VecDeque;
use std::io::{self, Write};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use cellwright_stdext::SpoolFile;
use tracing::{debug, warn};

use super::BacklogItem;
use crate::connection::Channel;
use crate::frame::Frame;

/// Bytes of a record before the lengths of its frames: the channel (1) and the number of frames (4).
const RECORD_HEADER_SIZE: usize = 5;

/// Backlog items on disk, in order.
#[derive(Debug)]
pub(super) struct BacklogSpool<E> {
    file: SpoolFile,
    /// Offset of the next record to read.
    read: u64,
    /// Events. Their place in the order is a record with [`EVENT_TAG`].
    events: VecDeque<E>,
    /// Frames that are in another file. Their place in the order is a length of [`STORED_FRAME_TAG`].
    stored_frames: VecDeque<Frame>,
    /// Items after a failed write, in memory.
    unwritten: VecDeque<BacklogItem<E>>,
    failed: bool,
}

/// The channel byte of an event.
const EVENT_TAG: u8 = 255;

/// The length of a frame that is in another file.
const STORED_FRAME_TAG: u64 = u64::MAX;

const CHANNELS: [Channel; 5] = [
    Channel::Shell,
    Channel::Iopub,
    Channel::Stdin,
    Channel::Control,
    Channel::Heartbeat,
];

impl<E> BacklogSpool<E> {
    /// Appends an item to the spool, which is created if there is none. Returns the item if that fails.
    pub(super) fn push(
        spool: &mut Option<Self>,
        item: BacklogItem<E>,
    ) -> Result<(), BacklogItem<E>> {
        let spool = match spool {
            Some(spool) => spool,
            None => match SpoolFile::create() {
                Ok(file) => {
                    debug!("backlog continues on disk");
                    spool.insert(Self {
                        file,
                        read: 0,
                        events: VecDeque::new(),
                        stored_frames: VecDeque::new(),
                        unwritten: VecDeque::new(),
                        failed: false,
                    })
                }
                Err(error) => {
                    debug!(%error, "backlog stays in memory");
                    return Err(item);
                }
            },
        };
        spool.append(item);
        Ok(())
    }

    fn append(&mut self, item: BacklogItem<E>) {
        if !self.failed
            && let Err(error) = self.write_record(&item)
        {
            debug!(%error, "backlog continues in memory");
            // Earlier records are complete: the file still ends after the last one.
            self.failed = true;
        }
        if self.failed {
            self.unwritten.push_back(item);
            return;
        }
        match item {
            BacklogItem::Frames(_, frames) => {
                let stored = frames.into_iter();
                self.stored_frames
                    .extend(stored.filter(|frame| matches!(frame, Frame::OnDisk(_))));
            }
            BacklogItem::Event(event) => self.events.push_back(event),
        }
    }

    fn write_record(&mut self, item: &BacklogItem<E>) -> io::Result<()> {
        let mut header = BytesMut::new();
        let frames: &[Frame] = if let BacklogItem::Frames(channel, frames) = item {
            let channel = CHANNELS.iter().position(|other| other == channel);
            header.put_u8(u8::try_from(channel.unwrap_or_default()).unwrap_or_default());
            frames
        } else {
            header.put_u8(EVENT_TAG);
            &[]
        };
        header.put_u32(u32::try_from(frames.len()).map_err(io::Error::other)?);
        for frame in frames {
            header.put_u64(match frame {
                Frame::InMemory(bytes) => bytes.len() as u64,
                Frame::OnDisk(_) => STORED_FRAME_TAG,
            });
        }
        let header = header.freeze();
        let in_memory = frames.iter().filter_map(|frame| match frame {
            Frame::InMemory(bytes) => Some(bytes),
            Frame::OnDisk(_) => None,
        });
        let mut writer = self.file.writer();
        for bytes in std::iter::once(&header).chain(in_memory) {
            writer.write_all(bytes)?;
        }
        writer.finish();
        Ok(())
    }

    /// Returns the next item; `None` when there are no more.
    pub(super) fn pop(&mut self) -> Option<BacklogItem<E>> {
        if self.read < self.file.end() {
            // A read error of a file that was just written means a broken disk: its messages are lost.
            match self.read_record() {
                Ok(item) => return item,
                Err(error) => warn!(%error, "frames of the backlog are dropped"),
            }
            self.read = self.file.end();
        }
        // Events, such as a closed channel, are in memory.
        let event = self.events.pop_front();
        event
            .map(BacklogItem::Event)
            .or_else(|| self.unwritten.pop_front())
    }

    fn read_record(&mut self) -> io::Result<Option<BacklogItem<E>>> {
        let mut header = self.read_bytes(RECORD_HEADER_SIZE)?;
        let (channel, count) = (header.get_u8(), header.get_u32() as usize);
        if channel == EVENT_TAG {
            return Ok(self.events.pop_front().map(BacklogItem::Event));
        }
        let mut lengths = self.read_bytes(count * 8)?;
        let mut frames = Vec::with_capacity(count);
        while lengths.has_remaining() {
            let length = lengths.get_u64();
            if length == STORED_FRAME_TAG {
                frames.extend(self.stored_frames.pop_front());
                continue;
            }
            let length = usize::try_from(length).map_err(io::Error::other)?;
            frames.push(Frame::InMemory(self.read_bytes(length)?));
        }
        let channel = CHANNELS[usize::from(channel).min(CHANNELS.len() - 1)];
        Ok(Some(BacklogItem::Frames(channel, frames)))
    }

    fn read_bytes(&mut self, count: usize) -> io::Result<Bytes> {
        let end = self.read + count as u64;
        let bytes = self.file.read(self.read..end)?;
        self.read = end;
        Ok(Bytes::from(bytes))
    }
}
