//! Kernels that say more than anybody can take.

use std::time::Duration;

use cellwright_kernel::{Kernel as _, Request, Stop};
use cellwright_output::{Event, Sink};

use super::{Odd, bounded, words};

/// Takes its time.
#[derive(Default)]
struct Slow {
    bytes: usize,
    rest: usize,
}

impl Sink for Slow {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = event {
            self.bytes += bytes.len();
            self.rest += 1;
            if self.rest == 5000 {
                self.rest = 0;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// The most memory that this process has had, since it was last asked to forget.
fn most_memory() -> usize {
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
async fn two_hundred_megabytes_of_small_messages_arrive_and_take_little_memory() {
    let mut odd = Odd::start("").await;
    odd.works().await;
    // Forgets the peak.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = most_memory();
    // Signed one by one they would take a minute; without a key of theirs they are counted at least.
    let script = "begin(); out('x' * 100); small = bundle(message('iopub', 'stream', {'name': 'stdout', 'text': 'x' * 100}, key=b'guess')); flood('iopub', small, 150_000_000)\nfor n in range(30): raw('iopub', b''.join(bundle(message('iopub', 'stream', {'name': 'stdout', 'text': 'x' * 2000})) for _ in range(500)))\nend()";
    let mut sink = Slow::default();
    let outcome = bounded(
        odd.kernel
            .execute(&Request::new(script), &mut sink, &Stop::never()),
    )
    .await;
    assert_eq!(words(&outcome), "done");
    assert_eq!(sink.bytes, 100 + 30 * 500 * 2000);
    let grown = most_memory() - before;
    assert!(grown < 120 << 20, "{} MB", grown >> 20);
    assert_eq!(odd.kernel.take_remarks()[0].kind, "messages_refused");
    odd.works().await;
    odd.goes().await;
}

#[tokio::test]
async fn a_kernel_that_never_stops_talking_can_be_stopped() {
    // On a single thread, where nothing else runs unless it is let.
    let mut odd = Odd::start("").await;
    let script = "begin(); junk = bundle(message('iopub', 'stream', {'name': 'stdout', 'text': 'x'}))\nout('go'); talks = True\ndef talk():\n    while talks: raw('iopub', junk * 5000)\ntalker = threading.Thread(target=talk, daemon=True); talker.start()\ntry: time.sleep(60)\nfinally: talks = False; talker.join()";
    let told = odd.stopped(script, 1000).await;
    assert_eq!(
        told,
        "out:\"gox\" !KeyboardInterrupt | kept | messages_refused"
    );
    odd.works().await;
    odd.goes().await;
}
