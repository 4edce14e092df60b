//! Decoding and encoding.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, Limits, Rgb, RgbImage, imageops};

use super::Bounded;
use crate::limits::ImageLimits;

/// Qualities of JPEG that are tried, best first.
const QUALITIES: [u8; 4] = [80, 65, 50, 35];

/// Sizes that are tried, in percent of the largest allowed.
const SCALES: [u32; 5] = [100, 75, 50, 35, 25];

/// The image in a size and an encoding that is allowed; none if it cannot be decoded.
pub(super) fn within(bytes: &[u8], limits: &ImageLimits) -> Option<Bounded> {
    let image = fitted(decode(bytes, limits)?, limits.side);
    Some(encoded(image, limits))
}

/// An image that is no longer than allowed, in an encoding that is.
pub(super) fn encoded(image: DynamicImage, limits: &ImageLimits) -> Bounded {
    let image = padded(image, limits);
    for scale in SCALES {
        let (width, height) = (share(image.width(), scale), share(image.height(), scale));
        let least = limits.least_side.min(image.width().min(image.height()));
        if scale < 100 && width.min(height) < least {
            break;
        }
        let scaled;
        let image = if scale == 100 {
            &image
        } else {
            scaled = image.resize_exact(width, height, FilterType::Triangle);
            &scaled
        };
        if let Some((mime, bytes)) = encode(image, limits.bytes) {
            return Bounded::Scaled {
                mime,
                bytes,
                width,
                height,
            };
        }
    }
    Bounded::Stub("[image: it cannot be made small enough]".to_owned())
}

/// Whether it is whole.
pub(super) fn can_be_decoded(bytes: &[u8], limits: &ImageLimits) -> bool {
    decode(bytes, limits).is_some()
}

fn decode(bytes: &[u8], limits: &ImageLimits) -> Option<DynamicImage> {
    let mut reader = image::ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()?;
    // Up to eight bytes a pixel, for sixteen bits a channel; what claims more is a trap.
    let mut most = Limits::default();
    most.max_alloc = Some(limits.pixels.saturating_mul(8));
    reader.limits(most);
    let image = reader.decode().ok()?;
    Some(match image {
        // Nobody sees sixteen bits, and they take twice the memory in what follows.
        DynamicImage::ImageLuma16(_) => DynamicImage::ImageLuma8(image.into_luma8()),
        DynamicImage::ImageLumaA16(_) => DynamicImage::ImageLumaA8(image.into_luma_alpha8()),
        DynamicImage::ImageRgb16(_) => DynamicImage::ImageRgb8(image.into_rgb8()),
        DynamicImage::ImageRgba16(_) => DynamicImage::ImageRgba8(image.into_rgba8()),
        other => other,
    })
}

/// Scaled down to the longest side allowed; no side becomes zero.
fn fitted(image: DynamicImage, side: u32) -> DynamicImage {
    let longer = image.width().max(image.height());
    if longer <= side {
        return image;
    }
    let scaled = |length: u32| {
        let scaled = u64::from(length) * u64::from(side) / u64::from(longer);
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    image.resize_exact(
        scaled(image.width()),
        scaled(image.height()),
        FilterType::Triangle,
    )
}

/// Blown up by a whole number, so that pixels stay pixels, and set on white if that is not enough.
fn padded(image: DynamicImage, limits: &ImageLimits) -> DynamicImage {
    let (shorter, longer) = (
        image.width().min(image.height()).max(1),
        image.width().max(image.height()).max(1),
    );
    let least = limits.least_side.min(limits.side);
    if shorter >= least {
        return image;
    }
    let factor = least.div_ceil(shorter).min(limits.side / longer).max(1);
    let (width, height) = (image.width() * factor, image.height() * factor);
    let image = image.resize_exact(width, height, FilterType::Nearest);
    if width.min(height) >= least {
        return image;
    }
    let mut canvas = RgbImage::from_pixel(width.max(least), height.max(least), Rgb([255; 3]));
    imageops::replace(&mut canvas, &on_white(&image), 0, 0);
    DynamicImage::ImageRgb8(canvas)
}

/// PNG if it fits, which is sharp; else JPEG in the best quality that does.
fn encode(image: &DynamicImage, most: usize) -> Option<(&'static str, Vec<u8>)> {
    let mut bytes = Cursor::new(Vec::new());
    if image.write_to(&mut bytes, ImageFormat::Png).is_ok() && bytes.get_ref().len() <= most {
        return Some(("image/png", bytes.into_inner()));
    }
    let flat = on_white(image);
    QUALITIES.into_iter().find_map(|quality| {
        let mut bytes = Vec::new();
        let encoded = JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&flat);
        (encoded.is_ok() && bytes.len() <= most).then_some(("image/jpeg", bytes))
    })
}

/// Without transparency, which JPEG does not have.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let rgba = image.to_rgba8();
    RgbImage::from_fn(rgba.width(), rgba.height(), |x, y| {
        let [red, green, blue, alpha] = rgba.get_pixel(x, y).0;
        let blend = |part: u8| {
            let (part, alpha) = (u32::from(part), u32::from(alpha));
            let mixed = (part * alpha + 255 * (255 - alpha)) / 255;
            u8::try_from(mixed).unwrap_or(u8::MAX)
        };
        Rgb([blend(red), blend(green), blend(blue)])
    })
}

fn share(length: u32, percent: u32) -> u32 {
    (length * percent / 100).max(1)
}
