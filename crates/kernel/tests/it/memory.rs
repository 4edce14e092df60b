//! Large values: they arrive completely, and are never completely in memory.

use std::io::{self, Write};

use cellwright_kernel::{Ending, Kernel, Request, StopSignal};
use cellwright_output::{Artifacts, Capture, Captured, JsonStyle, Limits, Retention};

use crate::jupyter::ipykernel;
use crate::support::{python, start_runner};

/// Bytes by which the memory of the process may grow.
const GROWTH_LIMIT: u64 = 8 << 20;

/// The same for printed text of a Jupyter kernel: some of it waits in memory if it arrives faster than it is handled.
const BACKLOG_GROWTH_LIMIT: u64 = 48 << 20;

/// The peak memory of this process, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// Compares written bytes with the expected ones as they arrive.
struct ComparingWriter<'a, I> {
    parts: I,
    part: &'a [u8],
    written: u64,
}

impl<'a, I: Iterator<Item = &'a str>> Write for ComparingWriter<'a, I> {
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

async fn capture_cell(kernel: &mut dyn Kernel, artifacts: &Artifacts, code: &str) -> Captured {
    let limits = Limits {
        display_bytes: 1 << 20,
        stream_bytes: 1 << 20,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, Some(artifacts.clone()));
    let outcome = kernel
        .execute(&Request::new(code), &mut capture, &StopSignal::never())
        .await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    capture.finish()
}

/// Checks the outputs for a notebook: a beginning, `count` equal parts, and an end.
fn check_outputs(captured: &Captured, begin: &str, part: &str, count: usize, end: &str) {
    let repeated = std::iter::repeat_n(part, count);
    let mut expected = ComparingWriter {
        parts: [begin].into_iter().chain(repeated).chain([end]),
        part: &[],
        written: 0,
    };
    let style = JsonStyle::compact();
    captured.outputs.write(&mut expected, &style, 0).unwrap();
    assert!(expected.part.is_empty() && expected.parts.next().is_none());
}

async fn check_growth(kernel: &mut dyn Kernel, text: u64) {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    capture_cell(kernel, &artifacts, "display({'text/html': 'x'}, raw=True)").await;
    let before = peak_memory();
    let check_peak = |what: &str, limit: u64| {
        let grown = peak_memory() - before;
        assert!(grown < limit, "{what}: {grown} bytes more");
    };

    // 20 MB, 27 MB as base64.
    let code = "import base64\npicture = base64.b64encode(bytes(range(255)) * 80_000).decode()\n\
        display({'text/plain': 'tiny', 'image/png': picture}, raw=True)";
    let shown = capture_cell(kernel, &artifacts, code).await;
    let one: Vec<u8> = (0..255).collect();
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &one);
    assert_eq!(encoded.len(), 340);
    let begin = "[{\"data\":{\"image/png\":\"";
    let end = "\",\"text/plain\":[\"tiny\"]},\"metadata\":{},\"output_type\":\"display_data\"}]";
    check_outputs(&shown, begin, &encoded, 80_000, end);
    assert_eq!(shown.images[0].bytes, 20_400_000);
    let artifact = artifacts.open(shown.images[0].artifact.unwrap()).unwrap();
    assert_eq!(artifact.bytes(), 20_400_000);
    check_peak("a picture", GROWTH_LIMIT);

    let code = "display({'text/html': 'é\"\\n' * 5_000_000}, raw=True)";
    let shown = capture_cell(kernel, &artifacts, code).await;
    let begin = "[{\"data\":{\"text/html\":[";
    let end = "\"é\\\"\\n\"]},\"metadata\":{},\"output_type\":\"display_data\"}]";
    check_outputs(&shown, begin, "\"é\\\"\\n\",", 4_999_999, end);
    check_peak("a page", GROWTH_LIMIT);

    let code = "shown = display({'image/png': ''}, raw=True, display_id=True)\n\
        for i in range(20): shown.update({'image/png': picture[:8_000_000 + 4 * i]}, raw=True)";
    let shown = capture_cell(kernel, &artifacts, code).await;
    let begin = "[{\"data\":{\"image/png\":\"";
    // 8 000 076 characters.
    let end = "\"},\"metadata\":{},\"output_type\":\"display_data\"}]";
    let end = format!("{}{end}", &encoded[..216]);
    check_outputs(&shown, begin, &encoded, 23_529, &end);
    check_peak("a picture that changes", GROWTH_LIMIT);

    // 80 MB, 120 MB as JSON.
    let code = "print('é\"\\n' * 20_000_000, end='')";
    let printed = capture_cell(kernel, &artifacts, code).await;
    let begin = "[{\"name\":\"stdout\",\"output_type\":\"stream\",\"text\":[";
    check_outputs(
        &printed,
        begin,
        "\"é\\\"\\n\",",
        19_999_999,
        "\"é\\\"\\n\"]}]",
    );
    check_peak("much text at once", text);
}

#[tokio::test]
async fn large_values_of_the_runner_stay_on_disk() {
    let (mut kernel, _folder) = start_runner(&python()).await;
    check_growth(&mut kernel, GROWTH_LIMIT).await;
}

#[tokio::test]
async fn large_values_of_ipykernel_stay_on_disk() {
    let (mut kernel, _folder) = ipykernel().await;
    check_growth(&mut kernel, BACKLOG_GROWTH_LIMIT).await;
}
