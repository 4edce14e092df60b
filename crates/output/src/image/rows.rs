//! Figures that are too large to be decoded at once: row by row, each averaged into a smaller image.

use std::io::Cursor;

use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};
use png::{ColorType, Decoder, Limits, Transformations};

/// Pixels that are looked at at all: some seconds of work.
const PIXELS: u64 = 500_000_000;

/// What the decoder may hold, in bytes: a few rows.
const HELD: usize = 64 << 20;

/// A PNG in a size of which no side is longer than `side`; none if it is no PNG, is interlaced, or cannot be
/// decoded.
pub(super) fn shrunk(bytes: &[u8], side: u32) -> Option<DynamicImage> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: HELD });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = (reader.info().width, reader.info().height);
    let many = u64::from(width) * u64::from(height) > PIXELS;
    if many || reader.info().interlaced || reader.output_line_size(width)? > HELD {
        return None;
    }
    let (colour, _) = reader.output_color_type();
    let longer = width.max(height);
    let scaled = |length: u32| {
        let scaled = u64::from(length) * u64::from(side) / u64::from(longer);
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    let (to_width, to_height) = (scaled(width), scaled(height));
    let mut shrinking = Shrinking::new((width, height), (to_width, to_height), colour.samples());
    while let Some(row) = reader.next_row().ok()? {
        shrinking.take(row.data());
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

/// Rows on their way into a smaller image. Every pixel of that is the mean of those that fall into it.
struct Shrinking {
    from: (u32, u32),
    to: (u32, u32),
    channels: usize,
    /// How many rows have come.
    rows: u32,
    /// Sums of the row that is being made, and of how many rows.
    sums: Vec<u64>,
    summed: u64,
    /// How many pixels of a row fall into each.
    counts: Vec<u64>,
    pixels: Vec<u8>,
}

impl Shrinking {
    fn new(from: (u32, u32), to: (u32, u32), channels: usize) -> Self {
        let mut counts = vec![0; to.0 as usize];
        for x in 0..from.0 {
            counts[place(x, from.0, to.0)] += 1;
        }
        Self {
            from,
            to,
            channels,
            rows: 0,
            sums: vec![0; to.0 as usize * channels],
            summed: 0,
            counts,
            pixels: Vec::with_capacity(to.0 as usize * to.1 as usize * channels),
        }
    }

    fn take(&mut self, row: &[u8]) {
        for (x, pixel) in (0..self.from.0).zip(row.chunks_exact(self.channels)) {
            let at = place(x, self.from.0, self.to.0) * self.channels;
            for (sum, &part) in self.sums[at..].iter_mut().zip(pixel) {
                *sum += u64::from(part);
            }
        }
        self.summed += 1;
        self.rows += 1;
        let here = place(self.rows - 1, self.from.1, self.to.1);
        if self.rows == self.from.1 || place(self.rows, self.from.1, self.to.1) != here {
            self.finish_row();
        }
    }

    fn finish_row(&mut self) {
        for (at, sum) in self.sums.iter_mut().enumerate() {
            let count = (self.counts[at / self.channels] * self.summed).max(1);
            self.pixels
                .push(u8::try_from(*sum / count).unwrap_or(u8::MAX));
            *sum = 0;
        }
        self.summed = 0;
    }

    /// The smaller image; none if rows are missing.
    fn pixels(self) -> Option<Vec<u8>> {
        (self.rows == self.from.1).then_some(self.pixels)
    }
}

/// Where a pixel falls.
fn place(at: u32, from: u32, to: u32) -> usize {
    let place = u64::from(at) * u64::from(to) / u64::from(from.max(1));
    usize::try_from(place).unwrap_or(usize::MAX)
}
