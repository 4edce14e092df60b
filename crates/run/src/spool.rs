//! [`Spool`]: rendered outputs that wait to be written to a notebook. Small ones stay in memory, the others are in
//! a temporary file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use cellwright_notebook::file::Segment;

/// Size in bytes up to which a text stays in memory: reading it from a file would cost more.
const MEMORY_LIMIT: usize = 4 * 1024;

/// An unnamed temporary file, which the system deletes with the process.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<Arc<File>>,
    end: u64,
}

impl Spool {
    /// Stores the bytes that `write` produces.
    pub(crate) fn store(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Segment> {
        let mut writer = SpoolWriter {
            spool: self,
            buffer: Vec::new(),
            writer: None,
            length: 0,
        };
        write(&mut writer)?;
        writer.finish()
    }

    fn file(&mut self) -> io::Result<Arc<File>> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(tempfile::tempfile()?);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}

/// Collects one text: in memory first, in the file above [`MEMORY_LIMIT`].
struct SpoolWriter<'s> {
    spool: &'s mut Spool,
    buffer: Vec<u8>,
    writer: Option<BufWriter<Arc<File>>>,
    length: u64,
}

impl SpoolWriter<'_> {
    fn finish(self) -> io::Result<Segment> {
        let Some(mut output) = self.writer else {
            return Ok(Segment::Bytes(self.buffer.into()));
        };
        output.flush()?;
        let start = self.spool.end;
        self.spool.end += self.length;
        Ok(Segment::Stored {
            file: Arc::clone(output.get_ref()),
            start,
            length: self.length,
        })
    }
}

impl Write for SpoolWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        if let Some(output) = &mut self.writer {
            output.write_all(bytes)?;
            return Ok(bytes.len());
        }
        if self.buffer.len() + bytes.len() <= MEMORY_LIMIT {
            self.buffer.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let file = self.spool.file()?;
        // A failed write may have left bytes after the end.
        io::Seek::seek(&mut &*file, io::SeekFrom::Start(self.spool.end))?;
        let mut output = BufWriter::with_capacity(64 * 1024, file);
        output.write_all(&std::mem::take(&mut self.buffer))?;
        output.write_all(bytes)?;
        self.writer = Some(output);
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
        let mut spool = Spool::default();
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
    fn failed_write_leaves_no_bytes() {
        let mut spool = Spool::default();
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
