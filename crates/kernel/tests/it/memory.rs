//! Values that are larger than memory should be: they arrive whole, and are never in memory whole.

use std::io::{self, Write};

use cellwright_kernel::{Ending, Kernel, Request, Stop};
use cellwright_output::{Artifacts, Capture, Captured, Limits, Retention, Style};

use crate::jupyter::ipykernel;
use crate::support::{python, runner};

/// The most that it may take beside what the process has anyway.
const MOST: u64 = 8 << 20;

/// The same for what a Jupyter kernel prints: if that comes quicker than it can be taken, some of it waits in memory.
const MOST_WAITING: u64 = 48 << 20;

/// The most memory that this process has held.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// Compares what is written with what it should be, as it comes.
struct Expected<'a, I> {
    parts: I,
    part: &'a [u8],
    written: u64,
}

impl<'a, I: Iterator<Item = &'a str>> Write for Expected<'a, I> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.part.is_empty() {
                self.part = self.parts.next().map_or(b"", str::as_bytes);
            }
            let length = self.part.len().min(rest.len());
            if length == 0 || self.part[..length] != rest[..length] {
                return Err(io::Error::other(format!("differs at {}", self.written)));
            }
            (self.part, rest) = (&self.part[length..], &rest[length..]);
            self.written += length as u64;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn captured(kernel: &mut dyn Kernel, artifacts: &Artifacts, code: &str) -> Captured {
    let limits = Limits {
        display_bytes: 1 << 20,
        stream_bytes: 1 << 20,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, Some(artifacts.clone()));
    let outcome = kernel
        .execute(&Request::new(code), &mut capture, &Stop::never())
        .await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    capture.finish()
}

/// Checks what a notebook would get: a beginning, so many times the same, and an end.
fn check(captured: &Captured, begin: &str, same: &str, count: usize, end: &str) {
    let same = std::iter::repeat_n(same, count);
    let mut expected = Expected {
        parts: [begin].into_iter().chain(same).chain([end]),
        part: &[],
        written: 0,
    };
    let style = Style::compact();
    captured.outputs.write(&mut expected, &style, 0).unwrap();
    assert!(expected.part.is_empty() && expected.parts.next().is_none());
}

async fn stays_small(kernel: &mut dyn Kernel, text: u64) {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(folder.path(), Retention::default());
    captured(kernel, &artifacts, "display({'text/html': 'x'}, raw=True)").await;
    let before = peak();
    let grown = |what: &str, most: u64| {
        let grown = peak() - before;
        assert!(grown < most, "{what}: {grown} bytes more");
    };

    // 20 MB, 27 MB as base64.
    let code = "import base64\npicture = base64.b64encode(bytes(range(255)) * 80_000).decode()\n\
        display({'text/plain': 'tiny', 'image/png': picture}, raw=True)";
    let shown = captured(kernel, &artifacts, code).await;
    let one: Vec<u8> = (0..255).collect();
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &one);
    assert_eq!(encoded.len(), 340);
    let begin = "[{\"data\":{\"image/png\":\"";
    let end = "\",\"text/plain\":[\"tiny\"]},\"metadata\":{},\"output_type\":\"display_data\"}]";
    check(&shown, begin, &encoded, 80_000, end);
    assert_eq!(shown.images[0].bytes, 20_400_000);
    let artifact = artifacts.open(shown.images[0].artifact.unwrap()).unwrap();
    assert_eq!(artifact.bytes(), 20_400_000);
    grown("a picture", MOST);

    let code = "display({'text/html': 'é\"\\n' * 5_000_000}, raw=True)";
    let shown = captured(kernel, &artifacts, code).await;
    let begin = "[{\"data\":{\"text/html\":[";
    let end = "\"é\\\"\\n\"]},\"metadata\":{},\"output_type\":\"display_data\"}]";
    check(&shown, begin, "\"é\\\"\\n\",", 4_999_999, end);
    grown("a page", MOST);

    let code = "shown = display({'image/png': ''}, raw=True, display_id=True)\n\
        for i in range(20): shown.update({'image/png': picture[:8_000_000 + 4 * i]}, raw=True)";
    let shown = captured(kernel, &artifacts, code).await;
    let begin = "[{\"data\":{\"image/png\":\"";
    // 8 000 076 characters.
    let end = "\"},\"metadata\":{},\"output_type\":\"display_data\"}]";
    let end = format!("{}{end}", &encoded[..216]);
    check(&shown, begin, &encoded, 23_529, &end);
    grown("a picture that changes", MOST);

    // 80 MB, 120 MB as JSON.
    let code = "print('é\"\\n' * 20_000_000, end='')";
    let printed = captured(kernel, &artifacts, code).await;
    let begin = "[{\"name\":\"stdout\",\"output_type\":\"stream\",\"text\":[";
    check(
        &printed,
        begin,
        "\"é\\\"\\n\",",
        19_999_999,
        "\"é\\\"\\n\"]}]",
    );
    grown("much text at once", text);
}

#[tokio::test]
async fn large_values_of_the_runner_are_never_in_memory() {
    let (mut kernel, _folder) = runner(&python()).await;
    stays_small(&mut kernel, MOST).await;
}

#[tokio::test]
async fn large_values_of_ipykernel_are_never_in_memory() {
    let (mut kernel, _folder) = ipykernel().await;
    stays_small(&mut kernel, MOST_WAITING).await;
}
