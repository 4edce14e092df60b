//! Figures on their way to a model.

use serde_json::{Value, json};

use super::client::{Client, ToolReply};
use crate::context::Context;

/// Makes PNG files of any size without any package.
const PNG: &str = r"
import struct, zlib, base64
def png(width, height, colour=b'\x20\x60\xa0'):
    def chunk(kind, data):
        body = kind + data
        return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))
    packer = zlib.compressobj(1)
    row = b'\0' + colour * width
    data = b''.join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', data) + chunk(b'IEND', b'')
class Shown:
    def __init__(self, data, mime='image/png'): self.data, self.mime = data, mime
    def _repr_mimebundle_(self, **_): return {self.mime: base64.b64encode(self.data).decode()}
";

/// Width and height as they stand in a PNG.
fn size(image: &Value) -> (u32, u32) {
    let bytes = decoded(image["data"].as_str().unwrap());
    assert!(bytes.starts_with(b"\x89PNG"));
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four
            .iter()
            .fold(0_u32, |bits, &byte| bits << 6 | u32::from(digit(byte)));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

fn shown(code: &str) -> ToolReply {
    let context = Context::new();
    let mut client = Client::older(&context);
    client.call("eval", json!({"code": PNG})).ok();
    client
        .call("eval", json!({"code": code, "timeout": 120}))
        .ok()
}

#[test]
fn a_figure_comes_as_it_is() {
    let answer = shown("Shown(png(300, 200))");
    let images = answer.blocks("image");
    assert_eq!(images.len(), 1);
    assert_eq!(images[0]["mimeType"], "image/png");
    assert_eq!(size(images[0]), (300, 200));
    let image = &answer.structured()["cells"][0]["images"][0];
    assert_eq!(
        (image["width"].as_u64(), image["height"].as_u64()),
        (Some(300), Some(200))
    );
    assert!(
        image["artifact"]
            .as_str()
            .unwrap()
            .starts_with("artifact://")
    );
}

#[test]
fn a_huge_figure_is_made_small_enough() {
    let answer = shown("Shown(png(12_000, 9_000))");
    let images = answer.blocks("image");
    assert_eq!(images.len(), 1, "{}", answer.text());
    let (width, height) = size(images[0]);
    assert!(
        width <= 1568 && height <= 1568 && width > 1000,
        "{width}×{height}"
    );
    assert!((f64::from(width) / f64::from(height) - 4.0 / 3.0).abs() < 0.01);
    assert!(images[0]["data"].as_str().unwrap().len() < 700_000);
    assert_eq!(
        answer.structured()["cells"][0]["images"][0]["width"],
        12_000
    );
}

#[test]
fn invalid_images_are_named() {
    for broken in [
        "Shown(b'not an image at all')",
        "Shown(png(300, 200)[:60])",
        "Shown(png(300, 200)[:25] + b'x' * 400)",
        "Shown(b'')",
        "Shown(b'\\x89PNG\\r\\n\\x1a\\n' + b'\\xff' * 100)",
        "Shown(b'GIF89a' + b'\\0' * 40, 'image/gif')",
    ] {
        let answer = shown(broken);
        assert!(answer.blocks("image").is_empty(), "{broken}");
        assert_eq!(answer.structured()["status"], "ok", "{broken}");
        assert!(
            broken.contains("b'')") || !answer.text().contains(" 0 B"),
            "{}",
            answer.text()
        );
    }
    // An image with a wrong MIME type is sent with the right one.
    let answer = shown("Shown(png(300, 200), 'image/jpeg')");
    assert_eq!(answer.blocks("image")[0]["mimeType"], "image/png");
}

#[test]
fn of_many_figures_some_come_and_the_others_are_named() {
    let answer = shown(
        "from IPython.display import display\nfor i in range(9): display(Shown(png(100 + i, 50)))",
    );
    assert_eq!(answer.blocks("image").len(), 6);
    assert_eq!(
        answer.text().matches(", not sent: ").count(),
        3,
        "{}",
        answer.text()
    );
}
