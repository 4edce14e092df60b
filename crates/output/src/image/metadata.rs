//! Removes metadata from encoded images before they are decoded: colour profiles, texts and camera data are not
//! needed, and a compressed one can take hundreds of megabytes.

use std::borrow::Cow;

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The chunks of a PNG that its pixels depend on.
const PNG_PIXEL_CHUNKS: [&[u8]; 5] = [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"];

/// Markers of JPEG segments with metadata: application segments except JFIF (0) and Adobe (14), which describe the
/// colours, and comments.
const JPEG_METADATA: [u8; 15] = [
    0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xef, 0xfe,
];

/// Returns the image without metadata. Images of other formats, and the rest of a damaged image, are unchanged.
pub(super) fn without_metadata(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.starts_with(PNG_SIGNATURE) {
        return keep_parts(bytes, PNG_SIGNATURE.len(), png_chunk);
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return keep_parts(bytes, 2, jpeg_segment);
    }
    Cow::Borrowed(bytes)
}

/// The length of the part at the beginning of the bytes, and whether it is kept; `None` if the rest has no parts.
type NextPart = fn(&[u8]) -> Option<(usize, bool)>;

/// Copies the parts that are kept. An image without others is borrowed.
fn keep_parts(bytes: &[u8], start: usize, next: NextPart) -> Cow<'_, [u8]> {
    let mut kept: Option<Vec<u8>> = None;
    let mut at = start;
    while let Some((length, keep)) = next(&bytes[at..]) {
        let end = at.saturating_add(length).min(bytes.len());
        match &mut kept {
            Some(kept) if keep => kept.extend_from_slice(&bytes[at..end]),
            None if !keep => kept = Some(bytes[..at].to_vec()),
            _ => {}
        }
        at = end;
    }
    match kept {
        Some(mut kept) => {
            kept.extend_from_slice(&bytes[at..]);
            Cow::Owned(kept)
        }
        None => Cow::Borrowed(bytes),
    }
}

/// Length, type, data and checksum.
fn png_chunk(bytes: &[u8]) -> Option<(usize, bool)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let name = rest.get(..4)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    Some((length.saturating_add(12), PNG_PIXEL_CHUNKS.contains(&name)))
}

/// A marker and a length that includes itself. The pixels after the start of scan are not segments.
fn jpeg_segment(bytes: &[u8]) -> Option<(usize, bool)> {
    const START_OF_SCAN: u8 = 0xda;
    let [0xff, marker, high, low] = *bytes.first_chunk::<4>()? else {
        return None;
    };
    if marker == START_OF_SCAN || !(0xc0..=0xfe).contains(&marker) {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    Some((2 + length, !JPEG_METADATA.contains(&marker)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: [u8; 4], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], &name, data, b"crc."].concat()
    }

    #[test]
    fn metadata_chunks_of_a_png_are_removed() {
        let pixels = [
            chunk(*b"IHDR", b"size"),
            chunk(*b"IDAT", b"pixels"),
            chunk(*b"IEND", b""),
        ];
        let with = |metadata: &[Vec<u8>]| {
            [
                PNG_SIGNATURE,
                &pixels[0],
                &metadata.concat(),
                &pixels[1],
                &pixels[2],
            ]
            .concat()
        };
        let plain = with(&[]);
        assert!(matches!(without_metadata(&plain), Cow::Borrowed(_)));
        let transparent = with(&[chunk(*b"tRNS", b"0")]);
        assert_eq!(without_metadata(&transparent), transparent);
        let names = [b"iCCP", b"zTXt", b"iTXt", b"tEXt", b"eXIf"];
        let metadata = names.map(|name| chunk(*name, b"large"));
        assert_eq!(without_metadata(&with(&metadata)), plain);
    }

    #[test]
    fn damaged_images_keep_their_end() {
        let cut = [PNG_SIGNATURE, &chunk(*b"iCCP", b"profile")[..10]].concat();
        assert_eq!(without_metadata(&cut), PNG_SIGNATURE);
        let short = [PNG_SIGNATURE, b"\0\0"].concat();
        assert_eq!(without_metadata(&short), short);
        for bytes in [&b""[..], b"\xff\xd8\xff", b"GIF89a"] {
            assert_eq!(without_metadata(bytes), bytes);
        }
    }

    #[test]
    fn metadata_segments_of_a_jpeg_are_removed() {
        let segment = |marker: u8, data: &[u8]| {
            let length = u16::try_from(data.len() + 2).unwrap().to_be_bytes();
            [&[0xff, marker], &length[..], data].concat()
        };
        let (first, adobe) = (segment(0xe0, b"JFIF"), segment(0xee, b"Adobe"));
        let end = [segment(0xda, b"scan"), b"pixels \xff\xe1 and more".to_vec()].concat();
        let profile = segment(0xe2, b"ICC_PROFILE");
        let start = b"\xff\xd8".to_vec();
        let with = [
            &start[..],
            &first,
            &profile,
            &adobe,
            &segment(0xfe, b"c"),
            &end,
        ]
        .concat();
        let without = [&start[..], &first, &adobe, &end].concat();
        assert_eq!(without_metadata(&with), without);
        assert!(matches!(without_metadata(&without), Cow::Borrowed(_)));
    }
}
