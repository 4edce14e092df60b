//! Kernels that send more than the host can handle.

use std::time::Duration;

use cellwright_kernel::{Kernel as _, Request, StopSignal};
use cellwright_output::{Event, Sink};

use super::{HostileKernel, outcome_summary, within_timeout};

/// Sleeps regularly.
#[derive(Default)]
struct SlowSink {
    bytes: usize,
    since_sleep: usize,
}

impl Sink for SlowSink {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = event {
            self.bytes += bytes.len();
            self.since_sleep += 1;
            if self.since_sleep == 5000 {
                self.since_sleep = 0;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// The peak memory of this process since the last reset, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 1024
}

#[tokio::test]
async fn two_hundred_megabytes_of_small_messages_need_little_memory() {
    let mut kernel = HostileKernel::start("").await;
    kernel.assert_works().await;
    // Resets the peak.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_memory();
    // Signing each message would take a minute. Messages with a wrong key are rejected, but counted.
    let script = "begin(); out('x' * 100); small = encode_message(message('iopub', 'stream', {'name': 'stdout', 'text': 'x' * 100}, key=b'guess')); flood('iopub', small, 150_000_000)\nfor n in range(30): raw('iopub', b''.join(encode_message(message('iopub', 'stream', {'name': 'stdout', 'text': 'x' * 2000})) for _ in range(500)))\nend()";
    let mut sink = SlowSink::default();
    let outcome = within_timeout(kernel.jupyter.execute(
        &Request::new(script),
        &mut sink,
        &StopSignal::never(),
    ))
    .await;
    assert_eq!(outcome_summary(&outcome), "done");
    assert_eq!(sink.bytes, 100 + 30 * 500 * 2000);
    let grown = peak_memory() - before;
    assert!(grown < 120 << 20, "{} MB", grown >> 20);
    assert_eq!(kernel.jupyter.take_notices()[0].kind, "messages_refused");
    kernel.assert_works().await;
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn a_kernel_that_never_stops_sending_can_be_stopped() {
    // On a single-threaded runtime, where other tasks run only at await points.
    let mut kernel = HostileKernel::start("").await;
    let script = "begin(); junk = encode_message(message('iopub', 'stream', {'name': 'stdout', 'text': 'x'}))\nout('go'); sends = True\ndef send_junk():\n    while sends: raw('iopub', junk * 5000)\nsender = threading.Thread(target=send_junk, daemon=True); sender.start()\ntry: time.sleep(60)\nfinally: sends = False; sender.join()";
    let summary = kernel.run_and_stop(script, 1000).await;
    assert_eq!(
        summary,
        "out:\"gox\" !KeyboardInterrupt | kept | messages_refused"
    );
    kernel.assert_works().await;
    kernel.assert_shuts_down().await;
}
