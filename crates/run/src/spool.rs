//! [`Spool`]: text that waits to be written into a notebook. Little of it is held in memory, however much
//! there is.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use cellwright_notebook::file::Piece;

/// What is not longer than this stays in memory: a read of a file would cost more.
const SMALL: usize = 4 * 1024;

/// A file without a name, which goes with us.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<Arc<File>>,
    end: u64,
}

impl Spool {
    /// Keeps what is written.
    pub(crate) fn keep(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Piece> {
        let mut kept = Kept {
            spool: self,
            small: Vec::new(),
            out: None,
            length: 0,
        };
        write(&mut kept)?;
        kept.finish()
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

/// One text on its way.
struct Kept<'s> {
    spool: &'s mut Spool,
    small: Vec<u8>,
    out: Option<BufWriter<Arc<File>>>,
    length: u64,
}

impl Kept<'_> {
    fn finish(self) -> io::Result<Piece> {
        let Some(mut out) = self.out else {
            return Ok(Piece::Bytes(self.small.into()));
        };
        out.flush()?;
        let start = self.spool.end;
        self.spool.end += self.length;
        Ok(Piece::Stored {
            file: Arc::clone(out.get_ref()),
            start,
            length: self.length,
        })
    }
}

impl Write for Kept<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        if let Some(out) = &mut self.out {
            out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        if self.small.len() + bytes.len() <= SMALL {
            self.small.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let file = self.spool.file()?;
        // A text that failed half way may have left something behind the end.
        io::Seek::seek(&mut &*file, io::SeekFrom::Start(self.spool.end))?;
        let mut out = BufWriter::with_capacity(64 * 1024, file);
        out.write_all(&std::mem::take(&mut self.small))?;
        out.write_all(bytes)?;
        self.out = Some(out);
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
    fn short_and_long_texts_come_back_as_they_were() {
        let mut spool = Spool::default();
        let long = "x".repeat(3 * SMALL);
        let texts = ["", "short", long.as_str(), "between", long.as_str()];
        let pieces: Vec<Piece> = texts
            .iter()
            .map(|text| spool.keep(|out| out.write_all(text.as_bytes())).unwrap())
            .collect();
        for (piece, text) in pieces.iter().zip(texts) {
            assert_eq!(String::from_utf8(piece.read().unwrap()).unwrap(), text);
            assert_eq!(matches!(piece, Piece::Stored { .. }), text.len() > SMALL);
        }
    }

    #[test]
    fn a_text_that_failed_leaves_nothing() {
        let mut spool = Spool::default();
        let long = vec![b'x'; 2 * SMALL];
        spool.keep(|out| out.write_all(&long)).unwrap();
        let failed = spool.keep(|out| {
            out.write_all(&vec![b'y'; 2 * SMALL])?;
            Err(io::Error::other("no"))
        });
        assert!(failed.is_err());
        let piece = spool
            .keep(|out| out.write_all(&vec![b'z'; 2 * SMALL]))
            .unwrap();
        assert_eq!(piece.read().unwrap(), vec![b'z'; 2 * SMALL]);
    }
}
