//! [`Stored`]: a value that is in a file and not in memory.

use std::any::Any;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::artifact::place;
use crate::utf8::Decoder;

/// How much is read at once. Three bytes become four characters of base64, so it is a multiple of three.
pub(crate) const PIECE: usize = 3 * 16 * 1024;

/// What the bytes of a stored value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The bytes of a picture and the like, which are base64 in a notebook.
    Bytes,
    /// Text in UTF-8; what is none is replaced when it is read.
    Text,
    /// JSON without blanks, the members of objects in the order of their names.
    Json,
}

/// A value that is in a file and not in memory: a part of a file that has no name. Clones share it; when
/// the last one goes, so does what is in the file.
#[derive(Clone, Debug)]
pub struct Stored {
    file: Arc<File>,
    start: u64,
    length: u64,
    form: Form,
    /// Whoever frees that part of the file when nobody needs it any more.
    owner: Option<Arc<dyn Any + Send + Sync>>,
}

/// Whether it is the same part of the same file.
impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
            && (self.start, self.length, self.form) == (other.start, other.length, other.form)
    }
}

impl Stored {
    /// A part of a file that nobody writes to.
    pub fn new(file: Arc<File>, range: Range<u64>, form: Form) -> Self {
        Self {
            file,
            start: range.start,
            length: range.end.saturating_sub(range.start),
            form,
            owner: None,
        }
    }

    /// The same, in a file that has others in it; what owns this part lives as long as anybody needs it.
    #[must_use]
    pub fn owned_by(mut self, owner: impl Any + Send + Sync) -> Self {
        self.owner = Some(Arc::new(owner));
        self
    }

    /// How many bytes it has in the file.
    pub fn size(&self) -> u64 {
        self.length
    }

    /// What its bytes are.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether it shares its file with others, so that many of them need few files.
    pub(crate) fn shares_its_file(&self) -> bool {
        self.owner.is_some()
    }

    /// Hands on the bytes, piece by piece.
    pub fn read(&self, mut hear: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.part(0..self.length, &mut hear)
    }

    /// Hands on the text, piece by piece.
    pub fn read_text(&self, mut hear: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let mut decoder = Decoder::default();
        let mut result = Ok(());
        let mut take = |text: &str, result: &mut io::Result<()>| {
            if result.is_ok() && !text.is_empty() {
                *result = hear(text);
            }
        };
        self.read(|bytes| {
            decoder.push(bytes, |text| take(text, &mut result));
            std::mem::replace(&mut result, Ok(()))
        })?;
        decoder.finish(|text| take(text, &mut result));
        result
    }

    /// The text. It may be large: whoever can should take it piece by piece.
    pub fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        self.read_text(|piece| {
            text.push_str(piece);
            Ok(())
        })?;
        Ok(text)
    }

    /// The first bytes.
    pub fn head(&self, most: usize) -> io::Result<Vec<u8>> {
        let most = self.length.min(most as u64);
        let mut head = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
        self.part(0..most, &mut |bytes| {
            head.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(head)
    }

    fn part(
        &self,
        range: Range<u64>,
        hear: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut at, end) = (self.start + range.start, self.start + range.end);
        let most = usize::try_from(end - at).map_or(PIECE, |length| length.min(PIECE));
        let mut buffer = vec![0; most];
        while at < end {
            let most = usize::try_from(end - at).map_or(PIECE, |left| left.min(PIECE));
            // Whole pieces, because a piece of base64 must not end anywhere.
            let mut filled = 0;
            while filled < most {
                match place::read_at(&self.file, &mut buffer[filled..most], at + filled as u64) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            hear(&buffer[..filled])?;
            at += filled as u64;
        }
        Ok(())
    }
}
