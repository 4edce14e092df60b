//! Images for models.

use std::io::Cursor;

use cellwright_output::{
    Artifacts, BoundedImage, Bundle, Capture, Data, Event, Image, Limits, Retention, Sink,
};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};

fn captured_image(mime: &str, data: Data) -> Image {
    let mut capture = Capture::new(Limits::default(), None);
    capture.push(Event::Display {
        bundle: Bundle::default().with(mime, data),
        id: None,
        result: None,
    });
    capture.finish().images.remove(0)
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Noise, which does not compress.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1_u32;
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_be_bytes();
        Rgb([red, green, blue])
    }))
}

fn flat(width: u32, height: u32) -> DynamicImage {
    DynamicImage::ImageRgb8(RgbImage::from_pixel(width, height, Rgb([10, 20, 30])))
}

#[test]
fn a_small_image_is_unchanged() {
    let bytes = encoded(&flat(640, 480), ImageFormat::Png);
    let image = captured_image("image/png", Data::Bytes(bytes.clone()));
    assert_eq!((image.width, image.height), (Some(640), Some(480)));
    assert_eq!(image.bytes, bytes.len() as u64);
    let mime = "image/png".to_owned();
    assert_eq!(image.bounded(), BoundedImage::Unchanged { mime, bytes });
}

#[test]
fn base64_is_decoded() {
    use base64::Engine;
    let bytes = encoded(&flat(64, 48), ImageFormat::Png);
    let mut text = base64::engine::general_purpose::STANDARD.encode(&bytes);
    text.insert(20, '\n');
    text.push('\n');
    let image = captured_image("image/png", Data::Text(text));
    assert_eq!((image.width, image.bytes), (Some(64), bytes.len() as u64));
}

#[test]
fn large_images_are_scaled_down() {
    let cases = [
        (flat(4000, 1000), ImageFormat::Png, (1568, 392)),
        (flat(1000, 4000), ImageFormat::Jpeg, (392, 1568)),
        (noise(1500, 1500), ImageFormat::Png, (1500, 1500)),
        (flat(100_000, 1), ImageFormat::Png, (1568, 28)),
    ];
    for (image, format, max_size) in cases {
        let image = captured_image("image/png", Data::Bytes(encoded(&image, format)));
        match image.bounded() {
            BoundedImage::Scaled {
                bytes,
                width,
                height,
                mime,
            } => {
                assert!(bytes.len() <= 500 * 1024);
                assert!(
                    width <= max_size.0 && height <= max_size.1,
                    "{width}×{height}"
                );
                let decoded = image::load_from_memory(&bytes).unwrap();
                assert_eq!((decoded.width(), decoded.height()), (width, height));
                assert_eq!(image::guess_format(&bytes).unwrap().to_mime_type(), mime);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn tiny_images_are_enlarged() {
    for (width, height) in [(1, 1), (1, 40), (40, 1), (3, 2000)] {
        let bytes = encoded(&flat(width, height), ImageFormat::Png);
        match captured_image("image/png", Data::Bytes(bytes)).bounded() {
            BoundedImage::Scaled { width, height, .. } => {
                assert!(width.min(height) >= 28 && width.max(height) <= 1568);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn transparency_and_sixteen_bits_survive_scaling() {
    let clear = DynamicImage::ImageRgba8(RgbaImage::from_pixel(3000, 10, Rgba([9, 9, 9, 0])));
    let deep = DynamicImage::ImageLuma16(flat(3000, 50).to_luma16());
    for image in [clear, deep] {
        let image = captured_image("image/png", Data::Bytes(encoded(&image, ImageFormat::Png)));
        assert!(matches!(
            image.bounded(),
            BoundedImage::Scaled { width: 1568, .. }
        ));
    }
}

#[test]
fn undecodable_image_becomes_a_placeholder() {
    let good = encoded(&noise(2000, 2000), ImageFormat::Png);
    let half = good[..good.len() / 2].to_vec();
    let mut broken = good;
    broken.truncate(60);
    for bytes in [Vec::new(), b"not an image".to_vec(), half, broken] {
        match captured_image("image/png", Data::Bytes(bytes)).bounded() {
            BoundedImage::Placeholder(text) => assert!(text.starts_with("[image/png, "), "{text}"),
            // A decoder may accept a partial image.
            BoundedImage::Scaled { .. } => {}
            other @ BoundedImage::Unchanged { .. } => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_huge_figure_is_shrunk_row_by_row() {
    // A corner of another colour shows the orientation.
    let figure = RgbImage::from_fn(12_000, 9_000, |x, y| {
        Rgb(if x < 3000 && y < 3000 {
            [250, 10, 10]
        } else {
            [10, 20, 30]
        })
    });
    let bytes = encoded(&DynamicImage::ImageRgb8(figure), ImageFormat::Png);
    let image = captured_image("image/png", Data::Bytes(bytes));
    assert_eq!((image.width, image.height), (Some(12_000), Some(9_000)));
    let BoundedImage::Scaled {
        mime,
        bytes,
        width,
        height,
    } = image.bounded()
    else {
        panic!("{:?}", image.bounded());
    };
    assert_eq!((mime, width, height), ("image/png", 1568, 1176));
    let small = image::load_from_memory(&bytes).unwrap().to_rgb8();
    assert_eq!(small.get_pixel(10, 10).0, [250, 10, 10]);
    assert_eq!(small.get_pixel(380, 380).0, [250, 10, 10]);
    assert_eq!(small.get_pixel(400, 400).0, [10, 20, 30]);
    assert_eq!(small.get_pixel(1500, 1100).0, [10, 20, 30]);
}

#[test]
fn decompression_bomb_is_rejected() {
    // A small image whose header states a large size.
    let mut bytes = encoded(&flat(20, 20), ImageFormat::Png);
    bytes[16..20].copy_from_slice(&30_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&20_000_u32.to_be_bytes());
    let sum = crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    let image = captured_image("image/png", Data::Bytes(bytes));
    assert_eq!((image.width, image.height), (Some(30_000), Some(20_000)));
    match image.bounded() {
        BoundedImage::Placeholder(text) => {
            assert!(text.contains("30000×20000 pixels are too many"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn truncated_image_becomes_a_placeholder() {
    let bytes = encoded(&flat(300, 200), ImageFormat::Png);
    for length in [40, bytes.len() / 2, bytes.len() - 20] {
        let image = captured_image("image/png", Data::Bytes(bytes[..length].to_vec()));
        match image.bounded() {
            BoundedImage::Placeholder(text) => {
                assert!(text.contains("cannot be decoded"), "{text}");
            }
            other => panic!("{length}: {other:?}"),
        }
    }
}

/// The PNG checksum.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                0xedb8_8320 ^ (sum >> 1)
            } else {
                sum >> 1
            };
        }
    }
    !sum
}

#[test]
fn svg_is_unchanged_or_a_placeholder() {
    let small = captured_image("image/svg+xml", Data::Text("<svg/>".to_owned()));
    assert!(matches!(small.bounded(), BoundedImage::Unchanged { .. }));
    let large = captured_image("image/svg+xml", Data::Text("x".repeat(600_000)));
    assert!(matches!(large.bounded(), BoundedImage::Placeholder(_)));
}

#[test]
fn the_original_is_in_an_artifact() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let mut capture = Capture::new(Limits::default(), Some(artifacts.clone()));
    let bytes = encoded(&flat(20, 20), ImageFormat::Png);
    for _ in 0..3 {
        capture.push(Event::Clear { wait: true });
        capture.push(Event::Display {
            bundle: Bundle::default().with("image/png", Data::Bytes(bytes.clone())),
            id: None,
            result: None,
        });
    }
    let image = capture.finish().images.remove(0);
    let artifact = artifacts.open(image.artifact.unwrap()).unwrap();
    assert_eq!(std::fs::read(artifact.path()).unwrap(), bytes);
    assert_eq!(artifact.kind.mime(), "image/png");
    // Cleared images were not stored.
    assert_eq!(artifacts.list().unwrap().len(), 1);
}

/// The peak memory of this process, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// A compressed stream of zeros, from the pixels of a black image.
fn compressed_zeros(megabytes: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 1 << 16, 16 * megabytes);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().unwrap();
    let mut stream = writer.stream_writer().unwrap();
    let row = vec![0; 1 << 16];
    for _ in 0..16 * megabytes {
        std::io::Write::write_all(&mut stream, &row).unwrap();
    }
    stream.finish().unwrap();
    drop(writer);
    let mut data = Vec::new();
    let mut at = 8;
    while let Some(header) = bytes.get(at..at + 8) {
        let length = u32::from_be_bytes(header[..4].try_into().unwrap()) as usize;
        if &header[4..] == b"IDAT" {
            data.extend_from_slice(&bytes[at + 8..at + 8 + length]);
        }
        at += length + 12;
    }
    data
}

/// A small file whose metadata inflates to hundreds of megabytes.
#[test]
fn metadata_of_an_image_is_not_inflated() {
    const MEGABYTES: u32 = 256;
    let zeros = compressed_zeros(MEGABYTES);
    assert!(zeros.len() < 8 << 20, "{}", zeros.len());
    for (name, prefix) in [
        (*b"iCCP", &b"p\0\0"[..]),
        (*b"zTXt", b"k\0\0"),
        (*b"iTXt", b"k\0\x01\0\0\0"),
    ] {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 640, 480);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        let chunk = [prefix, &zeros].concat();
        writer
            .write_chunk(png::chunk::ChunkType(name), &chunk)
            .unwrap();
        writer.write_image_data(&vec![7; 640 * 480 * 3]).unwrap();
        writer.finish().unwrap();
        let before = peak_memory();
        let image = captured_image("image/png", Data::Bytes(bytes));
        assert_eq!((image.width, image.height), (Some(640), Some(480)));
        assert!(!matches!(image.bounded(), BoundedImage::Placeholder(_)));
        let growth = peak_memory() - before;
        assert!(growth < 64 << 20, "{name:?}: {growth} bytes");
    }
}
