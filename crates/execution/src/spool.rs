//! [`OutputSpool`]: rendered outputs that wait to be written to a notebook. Small ones stay in memory, the others are in
//! a temporary file.

use std::io::{self, BufWriter, IntoInnerError, Write};

use cellwright_notebook::file::Segment;
use cellwright_stdext::{SpoolFile, SpoolWriter};

/// Size in bytes up to which a text stays in memory: reading it from a file would cost more.
const MEMORY_LIMIT: usize = 4 * 1024;

/// Size in bytes of all texts in memory. A notebook may have very many cells with small outputs.
const ALL_MEMORY_LIMIT: usize = 4 * 1024 * 1024;

/// Bytes to write to the file at once.
const WRITE_SIZE: usize = 64 * 1024;

/// An unnamed temporary file, which the system deletes with the process.
#[derive(Debug, Default)]
pub(crate) struct OutputSpool {
    file: Option<SpoolFile>,
    /// Size in bytes of the texts in memory, also of those that are not used any more.
    memory_size: usize,
}

impl OutputSpool {
    /// Stores the bytes that `write` produces.
    pub(crate) fn store(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Segment> {
        let mut writer = SegmentWriter::Memory(Some(self), Vec::new());
        write(&mut writer)?;
        writer.finish()
    }

    fn file(&mut self) -> io::Result<&mut SpoolFile> {
        match &mut self.file {
            Some(file) => Ok(file),
            file => Ok(file.insert(SpoolFile::create()?)),
        }
    }
}

/// Collects one text: in memory first, in the file above [`MEMORY_LIMIT`].
enum SegmentWriter<'s> {
    /// The spool is there until the text exceeds the limit.
    Memory(Option<&'s mut OutputSpool>, Vec<u8>),
    File(BufWriter<SpoolWriter<'s>>),
}

impl SegmentWriter<'_> {
    fn finish(self) -> io::Result<Segment> {
        let output = match self {
            Self::Memory(Some(spool), buffer)
                if spool.memory_size + buffer.len() <= ALL_MEMORY_LIMIT =>
            {
                spool.memory_size += buffer.len();
                return Ok(Segment::Bytes(buffer.into()));
            }
            Self::Memory(Some(spool), buffer) => {
                let mut output = spool.file()?.writer();
                output.write_all(&buffer)?;
                output
            }
            Self::Memory(None, _) => return Err(io::Error::other("an earlier write failed")),
            Self::File(output) => output.into_inner().map_err(IntoInnerError::into_error)?,
        };
        let file = output.handle();
        let range = output.finish();
        Ok(Segment::Stored {
            file,
            start: range.start,
            length: range.end - range.start,
        })
    }
}

impl Write for SegmentWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(output) => output.write_all(bytes)?,
            Self::Memory(spool, buffer) => {
                if buffer.len() + bytes.len() <= MEMORY_LIMIT {
                    buffer.extend_from_slice(bytes);
                    return Ok(bytes.len());
                }
                let Some(spool) = spool.take() else {
                    return Err(io::Error::other("an earlier write failed"));
                };
                let mut output = BufWriter::with_capacity(WRITE_SIZE, spool.file()?.writer());
                output.write_all(buffer)?;
                output.write_all(bytes)?;
                *self = Self::File(output);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_texts_are_read_back_unchanged() {
        let mut spool = OutputSpool::default();
        let long = "x".repeat(3 * MEMORY_LIMIT);
        let texts = ["", "short", long.as_str(), "between", long.as_str()];
        let pieces: Vec<Segment> = texts
            .iter()
            .map(|text| {
                spool
                    .store(|output| output.write_all(text.as_bytes()))
                    .unwrap()
            })
            .collect();
        for (piece, text) in pieces.iter().zip(texts) {
            assert_eq!(String::from_utf8(piece.read().unwrap()).unwrap(), text);
            assert_eq!(
                matches!(piece, Segment::Stored { .. }),
                text.len() > MEMORY_LIMIT
            );
        }
    }

    #[test]
    fn very_many_small_texts_are_on_disk() {
        let mut spool = OutputSpool::default();
        let text = |number: usize| format!("{number:0MEMORY_LIMIT$}");
        let count = 2 * ALL_MEMORY_LIMIT / MEMORY_LIMIT;
        let pieces: Vec<Segment> = (0..count)
            .map(|number| {
                let text = text(number);
                spool
                    .store(|output| output.write_all(text.as_bytes()))
                    .unwrap()
            })
            .collect();
        for (number, piece) in pieces.iter().enumerate() {
            assert_eq!(piece.read().unwrap(), text(number).into_bytes());
            assert_eq!(
                matches!(piece, Segment::Stored { .. }),
                number >= count / 2,
                "{number}"
            );
        }
    }

    #[test]
    fn failed_write_leaves_no_bytes() {
        let mut spool = OutputSpool::default();
        let long = vec![b'x'; 2 * MEMORY_LIMIT];
        spool.store(|output| output.write_all(&long)).unwrap();
        let failed = spool.store(|output| {
            output.write_all(&vec![b'y'; 2 * MEMORY_LIMIT])?;
            Err(io::Error::other("no"))
        });
        assert!(failed.is_err());
        let piece = spool
            .store(|output| output.write_all(&vec![b'z'; 2 * MEMORY_LIMIT]))
            .unwrap();
        assert_eq!(piece.read().unwrap(), vec![b'z'; 2 * MEMORY_LIMIT]);
    }
}
