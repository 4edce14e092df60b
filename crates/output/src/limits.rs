//! All limits on output, with their reasons. Every cut is counted and reported.

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// How much of a cell's output is held and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of a cell's text in bytes, including the elision line. About 12 000 tokens: enough to work with,
    /// and a model can still read several.
    pub inline_bytes: usize,
    /// Bytes of the text from the beginning. The rest comes from the end, where results and errors are. At
    /// most half of `inline_bytes`.
    pub head_bytes: usize,
    /// Size of one line in bytes, including the final `…`. Long lines are data, not prose. Zero means that
    /// only `line_characters` applies.
    pub line_bytes: usize,
    /// Characters of the line being written, which `\r` and `\b` may still overwrite.
    pub line_characters: usize,
    /// Lines that a cursor may move up to overwrite, as nested progress bars do.
    pub cursor_rows: usize,
    /// Bytes of a cell's stream text held in memory for the notebook. The rest is read from the artifact when
    /// the notebook is written.
    pub stream_bytes: usize,
    /// Bytes of a cell's displayed values held in memory. Further values are stored as artifacts, and
    /// unchanged in the scratch file, from which the notebook is written.
    pub display_bytes: usize,
    /// Outputs per cell. More than a reader scrolls through; each one costs memory, even if empty.
    pub outputs: usize,
    /// Images listed for a model.
    pub images: usize,
    /// JSON values listed for a model.
    pub json_values: usize,
    /// Characters of one JSON value for a model.
    pub json_characters: usize,
    /// Status events held; the latest are kept.
    pub status_events: usize,
    /// Bytes of all status events held.
    pub status_bytes: usize,
    /// Bytes of an exception: of its name, its message and its traceback each.
    pub traceback_bytes: usize,
    /// Bytes of HTML converted to Markdown.
    pub html_bytes: usize,
}

impl Limits {
    /// Limits that keep the whole text of a cell. For outputs that are in memory already.
    pub fn whole_text() -> Self {
        /// Larger than any text in memory, and small enough to add limits up.
        const WHOLE: usize = usize::MAX / 16;
        Self {
            inline_bytes: WHOLE,
            head_bytes: WHOLE / 2,
            line_bytes: WHOLE,
            line_characters: WHOLE,
            html_bytes: WHOLE,
            ..Self::default()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inline_bytes: 50 * KIB,
            head_bytes: 20 * KIB,
            line_bytes: 768,
            line_characters: 4096,
            cursor_rows: 50,
            stream_bytes: 4 * MIB,
            display_bytes: 64 * MIB,
            outputs: 10_000,
            images: 100,
            json_values: 100,
            json_characters: 8000,
            status_events: 1000,
            status_bytes: MIB,
            traceback_bytes: 256 * KIB,
            html_bytes: 256 * KIB,
        }
    }
}

/// Limits of an image for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageLimits {
    /// Pixels of the longer side: models scale larger images down, or reject them.
    pub(crate) max_side: u32,
    /// Pixels of the shorter side: some models reject a whole request because of a 1×1 image.
    pub(crate) min_side: u32,
    /// Size of the encoded image, in bytes.
    pub(crate) bytes: usize,
    /// Pixels to decode at most. Four bytes each, so this bounds memory.
    pub(crate) pixels: u64,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            max_side: 1568,
            min_side: 28,
            bytes: 500 * KIB,
            pixels: 40_000_000,
        }
    }
}
