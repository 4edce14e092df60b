//! Sizes of images that are not decoded here: GIF and SVG.

/// Returns width and height in pixels of a GIF or SVG image.
pub(super) fn header_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if let Some([w0, w1, h0, h1]) = gif_screen(bytes) {
        let size = |low: u8, high: u8| u32::from(u16::from_le_bytes([low, high]));
        return Some((size(w0, w1), size(h0, h1)));
    }
    svg_size(bytes)
}

fn gif_screen(bytes: &[u8]) -> Option<[u8; 4]> {
    let rest = bytes
        .strip_prefix(b"GIF89a")
        .or_else(|| bytes.strip_prefix(b"GIF87a"))?;
    rest.first_chunk().copied()
}

/// The size in the attributes of the root element: `width` and `height`, or the `viewBox`.
fn svg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    /// The root element comes after comments and a document type, if there are any.
    const HEAD_SIZE: usize = 8192;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD_SIZE)]);
    let start = head.find("<svg")? + "<svg".len();
    let tag = head[start..].split('>').next()?;
    let pixels = |name: &str| pixels(attribute(tag, name)?);
    if let Some(size) = pixels("width").zip(pixels("height")) {
        return Some(size);
    }
    let numbers = attribute(tag, "viewBox")?
        .split([' ', ','])
        .filter(|text| !text.is_empty());
    let mut numbers = numbers.skip(2).map(self::pixels);
    Some((numbers.next()??, numbers.next()??))
}

/// The value of an attribute in a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        let at = rest.find(name)?;
        let before = rest[..at].chars().next_back();
        rest = &rest[at + name.len()..];
        let value = rest.trim_start().strip_prefix('=');
        // `stroke-width` is another attribute.
        if let (Some(value), true) = (value, before.is_none_or(char::is_whitespace)) {
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            return value[1..].split(quote).next();
        }
    }
}

/// A length in pixels; a point is 4/3 of a pixel. Lengths in other units, such as `100%`, are unknown.
fn pixels(length: &str) -> Option<u32> {
    let length = length.trim();
    let (number, scale) = match length.strip_suffix("pt") {
        Some(points) => (points, 4.0 / 3.0),
        None => (length.strip_suffix("px").unwrap_or(length), 1.0),
    };
    let number: f64 = number.trim().parse().ok()?;
    let pixels = (number * scale).round();
    // The conversion saturates.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    (0.0..=1e6).contains(&pixels).then_some(pixels as u32)
}

#[cfg(test)]
mod tests {
    use super::header_size;

    #[test]
    fn sizes_are_in_the_header() {
        type Case = (&'static [u8], Option<(u32, u32)>);
        let cases: [Case; 9] = [
            (b"GIF89a\x40\x01\xf0\x00rest", Some((320, 240))),
            (b"GIF89a\x40", None),
            (b"<svg width=\"12\" height='7.6px'/>", Some((12, 8))),
            (
                b"<?xml?>\n<!-- c -->\n<svg height=\"345.6pt\" version=\"1.1\"\n width=\"460.8pt\">",
                Some((614, 461)),
            ),
            (b"<svg viewBox=\"0 0 30, 20\"></svg>", Some((30, 20))),
            (b"<svg width=\"100%\" height=\"5\" viewBox='0 0 3 2'>", Some((3, 2))),
            (b"<svg stroke-width=\"9\" width=\"1\" height=\"2\">", Some((1, 2))),
            (b"<svg width=\"-1\" height=\"NaN\">", None),
            (b"plain text", None),
        ];
        for (bytes, size) in cases {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(header_size(bytes), size, "{text}");
        }
    }
}
