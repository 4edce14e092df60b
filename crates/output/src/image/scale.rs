//! Decoding, scaling and encoding of images.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, Limits, Rgb, RgbImage, imageops};

use super::BoundedImage;
use crate::limits::ImageLimits;

/// JPEG qualities to try, best first.
const JPEG_QUALITIES: [u8; 4] = [80, 65, 50, 35];

/// Sizes to try, in percent of the largest allowed size.
const SCALE_PERCENTS: [u32; 5] = [100, 75, 50, 35, 25];

/// Scales and encodes an image within `limits`. Returns `None` if it cannot be decoded.
pub(super) fn decode_and_scale(bytes: &[u8], limits: &ImageLimits) -> Option<BoundedImage> {
    let image = fit_side(decode(bytes, limits)?, limits.max_side);
    Some(encode_within(image, limits))
}

/// Encodes an image within `limits`. Its sides must not exceed the maximum.
pub(super) fn encode_within(image: DynamicImage, limits: &ImageLimits) -> BoundedImage {
    let image = enlarge(image, limits);
    for scale in SCALE_PERCENTS {
        let (width, height) = (
            percent_of(image.width(), scale),
            percent_of(image.height(), scale),
        );
        let min_side = limits.min_side.min(image.width().min(image.height()));
        if scale < 100 && width.min(height) < min_side {
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
            return BoundedImage::Scaled {
                mime,
                bytes,
                width,
                height,
            };
        }
    }
    BoundedImage::Placeholder("[image: it cannot be made small enough]".to_owned())
}

/// Returns whether the image can be decoded completely.
pub(super) fn can_be_decoded(bytes: &[u8], limits: &ImageLimits) -> bool {
    decode(bytes, limits).is_some()
}

fn decode(bytes: &[u8], limits: &ImageLimits) -> Option<DynamicImage> {
    let mut reader = image::ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()?;
    // Up to eight bytes per pixel, for 16-bit channels; an image that needs more is hostile.
    let mut decoder_limits = Limits::default();
    decoder_limits.max_alloc = Some(limits.pixels.saturating_mul(8));
    reader.limits(decoder_limits);
    let image = reader.decode().ok()?;
    Some(match image {
        // 16-bit channels are invisible and double the memory of later steps.
        DynamicImage::ImageLuma16(_) => DynamicImage::ImageLuma8(image.into_luma8()),
        DynamicImage::ImageLumaA16(_) => DynamicImage::ImageLumaA8(image.into_luma_alpha8()),
        DynamicImage::ImageRgb16(_) => DynamicImage::ImageRgb8(image.into_rgb8()),
        DynamicImage::ImageRgba16(_) => DynamicImage::ImageRgba8(image.into_rgba8()),
        other => other,
    })
}

/// Scales an image down so that no side exceeds `side`, and none becomes zero.
fn fit_side(image: DynamicImage, side: u32) -> DynamicImage {
    let long_side = image.width().max(image.height());
    if long_side <= side {
        return image;
    }
    let scaled = |length: u32| {
        let scaled = u64::from(length) * u64::from(side) / u64::from(long_side);
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    image.resize_exact(
        scaled(image.width()),
        scaled(image.height()),
        FilterType::Triangle,
    )
}

/// Enlarges a tiny image by an integer factor, which keeps pixels sharp, and pads it with white if needed.
fn enlarge(image: DynamicImage, limits: &ImageLimits) -> DynamicImage {
    let (short_side, long_side) = (
        image.width().min(image.height()).max(1),
        image.width().max(image.height()).max(1),
    );
    let min_side = limits.min_side.min(limits.max_side);
    if short_side >= min_side {
        return image;
    }
    let factor = min_side
        .div_ceil(short_side)
        .min(limits.max_side / long_side)
        .max(1);
    let (width, height) = (image.width() * factor, image.height() * factor);
    let image = image.resize_exact(width, height, FilterType::Nearest);
    if width.min(height) >= min_side {
        return image;
    }
    let mut canvas = RgbImage::from_pixel(width.max(min_side), height.max(min_side), Rgb([255; 3]));
    imageops::replace(&mut canvas, &on_white(&image), 0, 0);
    DynamicImage::ImageRgb8(canvas)
}

/// Encodes as PNG, which is lossless, if that fits; else as JPEG in the best quality that fits.
fn encode(image: &DynamicImage, bytes_limit: usize) -> Option<(&'static str, Vec<u8>)> {
    let mut bytes = Cursor::new(Vec::new());
    if image.write_to(&mut bytes, ImageFormat::Png).is_ok() && bytes.get_ref().len() <= bytes_limit
    {
        return Some(("image/png", bytes.into_inner()));
    }
    let flat = on_white(image);
    JPEG_QUALITIES.into_iter().find_map(|quality| {
        let mut bytes = Vec::new();
        let encoded = JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&flat);
        (encoded.is_ok() && bytes.len() <= bytes_limit).then_some(("image/jpeg", bytes))
    })
}

/// Replaces transparency by white, because JPEG has none.
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

fn percent_of(length: u32, percent: u32) -> u32 {
    (length * percent / 100).max(1)
}
