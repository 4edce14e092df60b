//! Measures the cost of a client of an ipykernel, for `scripts/bench jupyter`:
//!
//!     jupyter PYTHON SUPERVISOR auto|ipc|tcp PREPARE CODE COUNT
//!
//! starts an ipykernel, runs `1+1`, then PREPARE, then CODE COUNT times, and shuts it down. Prints as JSON
//! the wall time of each step, and the processor time and memory of this process, without the kernel and
//! its supervisor.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark program"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{IdentifiedBy, Jupyter, JupyterSpec, Transport};
use cellwright_kernel::process::Supervisor;
use cellwright_kernel::{Ending, Kernel, LaunchContext, Request, StopSignal};
use cellwright_output::{Data, Event, Sink};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};

/// Counts the bytes of text and displays.
#[derive(Default)]
struct ByteCounter {
    text: u64,
    displays: u64,
}

impl Sink for ByteCounter {
    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Text { bytes, .. } => self.text += bytes.len() as u64,
            Event::Display { bundle, .. } => {
                let sizes = bundle.data.iter().map(|(_, data)| Data::size(data));
                self.displays += sizes.sum::<u64>();
            }
            _ => {}
        }
    }
}

/// Measures wall time and processor time.
struct Stopwatch {
    started: Instant,
    cpu_before: f64,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            started: Instant::now(),
            cpu_before: cpu_seconds(),
        }
    }

    fn wall(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn to_json(&self) -> Value {
        json!({"wall": self.wall(), "cpu": cpu_seconds() - self.cpu_before})
    }
}

/// Processor time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the usage of this process can be read");
    let seconds = |time: TimeVal| {
        let micros = u32::try_from(time.tv_usec()).unwrap_or_default();
        Duration::new(time.tv_sec().unsigned_abs(), micros * 1000).as_secs_f64()
    };
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// The peak memory of this process, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is readable");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.expect("VmHWM is a number") * 1024
}

fn context(supervisor: &str, dir: &std::path::Path) -> LaunchContext {
    LaunchContext {
        cwd: dir.into(),
        supervisor: Supervisor::new(supervisor, Vec::new()),
        staging: vec![dir.join("staging")],
        sockets: vec!["/tmp".into()],
    }
}

fn spec(python: &str, transport: &str, dir: &std::path::Path) -> JupyterSpec {
    JupyterSpec {
        kernelspec: Box::new(Kernelspec::ipykernel(&PathBuf::from(python))),
        python: None,
        identified_by: IdentifiedBy::Kernelspec,
        env: std::env::vars_os().collect(),
        runtime: dir.join("runtime"),
        transport: match transport {
            "ipc" => Transport::Ipc,
            "tcp" => Transport::Tcp,
            other => panic!("unknown transport {other}"),
        },
        start_timeout: Duration::from_mins(1),
        interrupt_grace: Duration::from_secs(5),
    }
}

async fn run(kernel: &mut Jupyter, code: &str) -> ByteCounter {
    let mut counter = ByteCounter::default();
    let outcome = kernel
        .execute(&Request::new(code), &mut counter, &StopSignal::never())
        .await
        .expect("the cell runs");
    assert_eq!(outcome.ending, Ending::Completed);
    counter
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, python, supervisor, transport, prepare, code, count] = &arguments[..] else {
        panic!("jupyter PYTHON SUPERVISOR auto|ipc|tcp PREPARE CODE COUNT");
    };
    let count: u32 = count.parse().expect("a number");
    let dir = tempfile::tempdir().expect("a directory");
    let spec = spec(python, transport, dir.path());
    let context = context(supervisor, dir.path());

    let start = Stopwatch::start();
    let mut kernel = Jupyter::start(&spec, &context, &StopSignal::never())
        .await
        .expect("the kernel starts");
    let ready = start.to_json();
    assert_eq!(
        run(&mut kernel, "1+1").await.displays,
        1,
        "the result is one byte long"
    );
    let first = start.to_json();

    run(&mut kernel, prepare).await;
    let (mut times, mut text, mut displays) = (Vec::new(), 0, 0);
    let running = Stopwatch::start();
    for _ in 0..count {
        let started = Instant::now();
        let counter = run(&mut kernel, code).await;
        times.push(started.elapsed().as_secs_f64());
        text += counter.text;
        displays += counter.displays;
    }
    let (running, memory) = (running.to_json(), peak_memory());

    let ending = Stopwatch::start();
    let deadline = StopSignal::never().with_timeout(Duration::from_secs(5));
    Box::new(kernel).shutdown(deadline).await;
    println!(
        "{}",
        json!({
            "ready": ready, "first": first, "running": running, "times": times,
            "shutdown": ending.to_json(), "memory": memory, "text": text, "shown": displays,
        })
    );
}
