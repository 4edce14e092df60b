//! Every number that bounds output, with its reason. What a limit cuts off is counted and said.

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// How much of what a cell produces is kept, and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The text of a cell, in bytes, with the line that says what is missing. About 12 000 tokens:
    /// enough to work with, and a model can still read several.
    pub inline_bytes: usize,
    /// How much of it is taken from the beginning; the rest is the end, where results and
    /// errors stand. At most half of `inline_bytes` counts.
    pub head_bytes: usize,
    /// Bytes of one line of text, with the `…` that ends it. Long lines are data, not prose. Zero
    /// for no limit but `line_characters`.
    pub column_bytes: usize,
    /// Characters of the line that is being written, which `\r` and `\b` may still overwrite.
    pub line_characters: usize,
    /// Lines that a cursor may go up to overwrite them, as several progress bars do.
    pub rows: usize,
    /// Bytes of stream text of a cell that are held in memory for the notebook; the rest is read
    /// from the artifact when the notebook is written.
    pub stream_bytes: usize,
    /// Bytes of displayed values of a cell that are held in memory. The rest goes to disk: to artifacts,
    /// and as it came to where it is read from when the notebook is written.
    pub display_bytes: usize,
    /// Outputs of a cell. More than anyone scrolls through; each costs memory even when empty.
    pub outputs: usize,
    /// Images that are listed for a model.
    pub images: usize,
    /// JSON values that are listed for a model.
    pub json_values: usize,
    /// Characters of one JSON value for a model.
    pub json_characters: usize,
    /// Status events that are kept, the latest.
    pub status_events: usize,
    /// Bytes of all status events that are kept.
    pub status_bytes: usize,
    /// Bytes of one exception: name, message and traceback each.
    pub traceback_bytes: usize,
    /// Bytes of HTML that are turned into Markdown.
    pub html_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inline_bytes: 50 * KIB,
            head_bytes: 20 * KIB,
            column_bytes: 768,
            line_characters: 4096,
            rows: 50,
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

/// How large an image for a model may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Pixels of the longer side: models scale larger images down, or refuse them.
    pub side: u32,
    /// Pixels of the shorter side: some models refuse a whole request over an image of 1×1.
    pub least_side: u32,
    /// Encoded bytes.
    pub bytes: usize,
    /// Pixels that are decoded at all. Four bytes each, so this bounds memory.
    pub pixels: u64,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            side: 1568,
            least_side: 28,
            bytes: 500 * KIB,
            pixels: 40_000_000,
        }
    }
}
