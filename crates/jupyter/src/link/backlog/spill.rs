//! [`Spill`]: what waits on disk, in a file without a name.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::super::Item;
use crate::connection::Channel;
use crate::frame::Frame;

/// How many bytes stand before the lengths of the frames: the channel, and how many frames there are.
const HEAD: usize = 5;

/// What waits on disk.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    written: u64,
    read: u64,
    /// What is no message, to be found in the file by its mark.
    others: VecDeque<Item>,
    /// Frames that are on disk elsewhere, to be found by their mark as well.
    stored: VecDeque<Frame>,
    /// What came after the disk had failed.
    after: VecDeque<Item>,
    failed: bool,
}

/// The mark in the file of something that is no message.
const OTHER: u8 = 255;

/// The mark in the file, in the place of its length, of a frame that is on disk elsewhere.
const STORED: u64 = u64::MAX;

const CHANNELS: [Channel; 5] = [
    Channel::Shell,
    Channel::Iopub,
    Channel::Stdin,
    Channel::Control,
    Channel::Heartbeat,
];

impl Spill {
    /// Writes to the spill that there is, or to a new one; gives the item back if none can be made.
    pub(super) fn write(spill: &mut Option<Self>, item: Item) -> Result<(), Item> {
        let spill = match spill {
            Some(spill) => spill,
            None => match tempfile::tempfile() {
                Ok(file) => spill.insert(Self {
                    file,
                    written: 0,
                    read: 0,
                    others: VecDeque::new(),
                    stored: VecDeque::new(),
                    after: VecDeque::new(),
                    failed: false,
                }),
                Err(_) => return Err(item),
            },
        };
        spill.append(item);
        Ok(())
    }

    fn append(&mut self, item: Item) {
        if !self.failed && self.record(&item).is_err() {
            // What is there is whole: the next record would begin where this one was to be.
            self.failed = true;
        }
        if self.failed {
            self.after.push_back(item);
            return;
        }
        match item {
            Item::Frames(_, frames) => {
                let stored = frames.into_iter();
                self.stored
                    .extend(stored.filter(|frame| matches!(frame, Frame::Stored(_))));
            }
            other => self.others.push_back(other),
        }
    }

    fn record(&mut self, item: &Item) -> io::Result<()> {
        let mut head = BytesMut::new();
        let mut at = self.written;
        let frames: &[Frame] = if let Item::Frames(channel, frames) = item {
            let channel = CHANNELS.iter().position(|known| known == channel);
            head.put_u8(u8::try_from(channel.unwrap_or_default()).unwrap_or_default());
            frames
        } else {
            head.put_u8(OTHER);
            &[]
        };
        head.put_u32(u32::try_from(frames.len()).map_err(io::Error::other)?);
        for frame in frames {
            head.put_u64(match frame {
                Frame::Held(bytes) => bytes.len() as u64,
                Frame::Stored(_) => STORED,
            });
        }
        let head = head.freeze();
        let held = frames.iter().filter_map(|frame| match frame {
            Frame::Held(bytes) => Some(bytes),
            Frame::Stored(_) => None,
        });
        for bytes in std::iter::once(&head).chain(held) {
            self.file.write_all_at(bytes, at)?;
            at += bytes.len() as u64;
        }
        self.written = at;
        Ok(())
    }

    /// The next item; `None` when everything was read.
    pub(super) fn read(&mut self) -> Option<Item> {
        if self.read < self.written {
            // A file of our own that cannot be read back is a broken disk; there is nothing to be saved.
            if let Ok(item) = self.reread() {
                return item;
            }
            self.read = self.written;
        }
        // That a channel was closed is known without the file.
        self.others.pop_front().or_else(|| self.after.pop_front())
    }

    fn reread(&mut self) -> io::Result<Option<Item>> {
        let mut head = self.bytes(HEAD)?;
        let (channel, count) = (head.get_u8(), head.get_u32() as usize);
        if channel == OTHER {
            return Ok(self.others.pop_front());
        }
        let mut lengths = self.bytes(count * 8)?;
        let mut frames = Vec::with_capacity(count);
        while lengths.has_remaining() {
            let length = lengths.get_u64();
            if length == STORED {
                frames.extend(self.stored.pop_front());
                continue;
            }
            let length = usize::try_from(length).map_err(io::Error::other)?;
            frames.push(Frame::Held(self.bytes(length)?));
        }
        let channel = CHANNELS[usize::from(channel).min(CHANNELS.len() - 1)];
        Ok(Some(Item::Frames(channel, frames)))
    }

    fn bytes(&mut self, count: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, self.read)?;
        self.read += count as u64;
        Ok(Bytes::from(bytes))
    }
}
