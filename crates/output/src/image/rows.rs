//! Shrinks PNG images that are too large to decode at once: each row is averaged into a smaller image.

use std::io::Cursor;

use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};
use png::{ColorType, Decoder, Limits, Transformations};

/// Maximum number of pixels to process: some seconds of work.
const PIXELS_MAX: u64 = 500_000_000;

/// Memory limit of the decoder, in bytes: a few rows.
const MEMORY_LIMIT: usize = 64 << 20;

/// Shrinks a PNG so that no side exceeds `side` pixels. Returns `None` if the image is not a PNG, is
/// interlaced, or cannot be decoded.
pub(super) fn shrink_png(bytes: &[u8], side: u32) -> Option<DynamicImage> {
    let mut decoder = Decoder::new_with_limits(
        Cursor::new(bytes),
        Limits {
            bytes: MEMORY_LIMIT,
        },
    );
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = (reader.info().width, reader.info().height);
    let too_large = u64::from(width) * u64::from(height) > PIXELS_MAX;
    if too_large || reader.info().interlaced || reader.output_line_size(width)? > MEMORY_LIMIT {
        return None;
    }
    let (colour, _) = reader.output_color_type();
    let long_side = width.max(height);
    let scaled = |length: u32| {
        let scaled = u64::from(length) * u64::from(side) / u64::from(long_side);
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    let (to_width, to_height) = (scaled(width), scaled(height));
    let mut shrinking = RowAverager::new((width, height), (to_width, to_height), colour.samples());
    while let Some(row) = reader.next_row().ok()? {
        shrinking.push_row(row.data());
    }
    let pixels = shrinking.pixels()?;
    Some(match colour {
        ColorType::Grayscale => {
            DynamicImage::ImageLuma8(GrayImage::from_raw(to_width, to_height, pixels)?)
        }
        ColorType::GrayscaleAlpha => {
            DynamicImage::ImageLumaA8(GrayAlphaImage::from_raw(to_width, to_height, pixels)?)
        }
        ColorType::Rgb => DynamicImage::ImageRgb8(RgbImage::from_raw(to_width, to_height, pixels)?),
        ColorType::Rgba => {
            DynamicImage::ImageRgba8(RgbaImage::from_raw(to_width, to_height, pixels)?)
        }
        ColorType::Indexed => return None,
    })
}

/// Averages rows into a smaller image: each target pixel is the mean of its source pixels.
struct RowAverager {
    from: (u32, u32),
    to: (u32, u32),
    channels: usize,
    /// Number of rows received.
    rows: u32,
    /// Sums of the current target row, and the number of source rows in them.
    sums: Vec<u64>,
    rows_summed: u64,
    /// Number of source pixels per row for each target column.
    counts: Vec<u64>,
    pixels: Vec<u8>,
}

impl RowAverager {
    fn new(from: (u32, u32), to: (u32, u32), channels: usize) -> Self {
        let mut counts = vec![0; to.0 as usize];
        for x in 0..from.0 {
            counts[target_index(x, from.0, to.0)] += 1;
        }
        Self {
            from,
            to,
            channels,
            rows: 0,
            sums: vec![0; to.0 as usize * channels],
            rows_summed: 0,
            counts,
            pixels: Vec::with_capacity(to.0 as usize * to.1 as usize * channels),
        }
    }

    fn push_row(&mut self, row: &[u8]) {
        for (x, pixel) in (0..self.from.0).zip(row.chunks_exact(self.channels)) {
            let at = target_index(x, self.from.0, self.to.0) * self.channels;
            for (sum, &part) in self.sums[at..].iter_mut().zip(pixel) {
                *sum += u64::from(part);
            }
        }
        self.rows_summed += 1;
        self.rows += 1;
        let row_index = target_index(self.rows - 1, self.from.1, self.to.1);
        if self.rows == self.from.1 || target_index(self.rows, self.from.1, self.to.1) != row_index
        {
            self.finish_row();
        }
    }

    fn finish_row(&mut self) {
        for (at, sum) in self.sums.iter_mut().enumerate() {
            let count = (self.counts[at / self.channels] * self.rows_summed).max(1);
            self.pixels
                .push(u8::try_from(*sum / count).unwrap_or(u8::MAX));
            *sum = 0;
        }
        self.rows_summed = 0;
    }

    /// Returns the pixels of the smaller image, or `None` if rows are missing.
    fn pixels(self) -> Option<Vec<u8>> {
        (self.rows == self.from.1).then_some(self.pixels)
    }
}

/// Returns the target index of a source index.
fn target_index(at: u32, from: u32, to: u32) -> usize {
    let index = u64::from(at) * u64::from(to) / u64::from(from.max(1));
    usize::try_from(index).unwrap_or(usize::MAX)
}
