//! What it costs to take in a cell's outputs and to write them for a notebook:
//!
//!     large PYTHON SUPERVISOR runner|jupyter CODE
//!
//! starts a kernel, runs `1`, then CODE, and writes what it put out to a file without a name. Prints as JSON
//! how long that took, and how much processor time and memory it took us: the kernel and its supervisor are
//! other processes, and not included.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program for measuring"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Source, Transport};
use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::process::Supervisor;
use cellwright_kernel::python::{Interpreter, Origin};
use cellwright_kernel::{Ending, Kernel, Request, Stop};
use cellwright_output::{Artifacts, Capture, Captured, Limits, Retention, Style};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::json;

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
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_default() * 1024
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
    assert_eq!(outcome.expect("it runs").ending, Ending::Completed);
    capture.finish()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [python, supervisor, backend, code] = &arguments[..] else {
        println!("usage: large PYTHON SUPERVISOR runner|jupyter CODE");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let supervisor = Supervisor {
        program: supervisor.into(),
        arguments: Vec::new(),
    };
    let env = std::env::vars_os().collect();
    let staging = vec![folder.path().join("staged")];
    let (start_timeout, interrupt_grace) = (Duration::from_mins(1), Duration::from_secs(2));
    let mut kernel: Box<dyn Kernel> = if backend == "runner" {
        let spec = RunnerSpec {
            interpreter: Interpreter {
                program: python.into(),
                origin: Origin::Explicit,
                environment: None,
                rejected: Vec::new(),
            },
            cwd: folder.path().to_owned(),
            env,
            supervisor,
            staging,
            start_timeout,
            interrupt_grace,
            trace: None,
        };
        Box::new(
            Runner::start(&spec, &Stop::never())
                .await
                .expect("it starts"),
        )
    } else {
        let spec = JupyterSpec {
            source: Source::Start {
                kernelspec: Box::new(Kernelspec::ipykernel(&PathBuf::from(python))),
                python: None,
            },
            cwd: folder.path().to_owned(),
            env,
            supervisor,
            runtime: folder.path().join("runtime"),
            sockets: vec![folder.path().join("sockets")],
            staging,
            transport: Transport::Auto,
            start_timeout,
            interrupt_grace,
        };
        Box::new(
            Jupyter::start(&spec, &Stop::never())
                .await
                .expect("it starts"),
        )
    };
    let artifacts = Artifacts::new(folder.path().join("artifacts"), Retention::default());
    captured(kernel.as_mut(), &artifacts, "1").await;
    let before = peak();
    let (began, cpu) = (Instant::now(), used());
    let captured = captured(kernel.as_mut(), &artifacts, code).await;
    let ran = (began.elapsed().as_secs_f64(), used() - cpu);
    let (began, cpu) = (Instant::now(), used());
    let mut file = tempfile::tempfile().expect("a file");
    let style = Style::default();
    captured
        .outputs
        .write(&mut file, &style, 3)
        .expect("it can be written");
    let written = file.metadata().map_or(0, |metadata| metadata.len());
    let answer = json!({
        "run": {"wall": ran.0, "cpu": ran.1},
        "write": {"wall": began.elapsed().as_secs_f64(), "cpu": used() - cpu, "bytes": written},
        "peak": {"before": before, "after": peak()},
    });
    println!("{answer}");
}
