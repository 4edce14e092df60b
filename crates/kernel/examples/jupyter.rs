//! What a client of an ipykernel costs, for `scripts/bench jupyter`:
//!
//!     jupyter PYTHON SUPERVISOR auto|ipc|tcp PREPARE CODE COUNT
//!
//! starts an ipykernel, runs `1+1`, then PREPARE, then CODE so many times, and shuts it down. Prints as JSON
//! how long each took, and how much processor time and memory it took us: the kernel and its supervisor
//! are other processes, and not included.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program for measuring"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Source, Transport};
use cellwright_kernel::process::Supervisor;
use cellwright_kernel::{Ending, Kernel, Request, Stop};
use cellwright_output::{Data, Event, Sink};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};

/// Counts what comes.
#[derive(Default)]
struct Counted {
    text: u64,
    shown: u64,
}

impl Sink for Counted {
    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Text { bytes, .. } => self.text += bytes.len() as u64,
            Event::Display { bundle, .. } => {
                let sizes = bundle.data.iter().map(|(_, data)| Data::size(data));
                self.shown += sizes.sum::<u64>();
            }
            _ => {}
        }
    }
}

/// Wall time and processor time since some moment.
struct Watch {
    began: Instant,
    used: f64,
}

impl Watch {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            used: used(),
        }
    }

    fn wall(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn told(&self) -> Value {
        json!({"wall": self.wall(), "cpu": used() - self.used})
    }
}

/// Processor time that we have used, in seconds.
fn used() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("one's own usage can be asked for");
    let seconds = |time: TimeVal| {
        let micros = u32::try_from(time.tv_usec()).unwrap_or_default();
        Duration::new(time.tv_sec().unsigned_abs(), micros * 1000).as_secs_f64()
    };
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// The most memory that we have held, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it can be read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.expect("there is a number") * 1024
}

fn spec(python: &str, supervisor: &str, transport: &str, folder: &std::path::Path) -> JupyterSpec {
    JupyterSpec {
        source: Source::Start {
            kernelspec: Box::new(Kernelspec::ipykernel(&PathBuf::from(python))),
            python: None,
        },
        cwd: folder.to_owned(),
        env: std::env::vars_os().collect(),
        supervisor: Supervisor {
            program: supervisor.into(),
            arguments: Vec::new(),
        },
        runtime: folder.join("runtime"),
        sockets: vec!["/tmp".into()],
        staging: vec![folder.join("staging")],
        transport: match transport {
            "auto" => Transport::Auto,
            "ipc" => Transport::Ipc,
            "tcp" => Transport::Tcp,
            other => panic!("no transport {other}"),
        },
        start_timeout: Duration::from_mins(1),
        interrupt_grace: Duration::from_secs(5),
    }
}

async fn run(kernel: &mut Jupyter, code: &str) -> Counted {
    let mut heard = Counted::default();
    let outcome = kernel
        .execute(&Request::new(code), &mut heard, &Stop::never())
        .await
        .expect("it runs");
    assert_eq!(outcome.ending, Ending::Completed);
    heard
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, python, supervisor, transport, prepare, code, count] = &arguments[..] else {
        panic!("jupyter PYTHON SUPERVISOR auto|ipc|tcp PREPARE CODE COUNT");
    };
    let count: u32 = count.parse().expect("a number");
    let folder = tempfile::tempdir().expect("a folder");
    let spec = spec(python, supervisor, transport, folder.path());

    let start = Watch::start();
    let mut kernel = Jupyter::start(&spec, &Stop::never())
        .await
        .expect("it starts");
    let ready = start.told();
    assert_eq!(run(&mut kernel, "1+1").await.shown, 1, "it is 2");
    let first = start.told();

    run(&mut kernel, prepare).await;
    let (mut times, mut text, mut shown) = (Vec::new(), 0, 0);
    let running = Watch::start();
    for _ in 0..count {
        let one = Instant::now();
        let heard = run(&mut kernel, code).await;
        times.push(one.elapsed().as_secs_f64());
        text += heard.text;
        shown += heard.shown;
    }
    let (running, memory) = (running.told(), most_memory());

    let ending = Watch::start();
    let patience = Stop::never().with_timeout(Duration::from_secs(5));
    Box::new(kernel).shutdown(patience).await;
    println!(
        "{}",
        json!({
            "ready": ready, "first": first, "running": running, "times": times,
            "shutdown": ending.told(), "memory": memory, "text": text, "shown": shown,
        })
    );
}
