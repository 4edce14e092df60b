//! Measures the cost of receiving a cell's outputs and writing them for a notebook:
//!
//!     large PYTHON SUPERVISOR runner|jupyter CODE
//!
//! starts a kernel, runs `1`, then CODE, and writes its outputs to an anonymous file. Prints as JSON the wall
//! time, and the processor time and memory of this process, without the kernel and its supervisor.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark program"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{IdentifiedBy, JupyterSpec, Transport};
use cellwright_kernel::backend::runner::RunnerSpec;
use cellwright_kernel::process::Supervisor;
use cellwright_kernel::{Ending, Kernel, KernelSpec, LaunchContext, Request, StopSignal};
use cellwright_output::{Artifacts, Capture, Captured, JsonStyle, Limits, Retention};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::json;

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
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_default() * 1024
}

async fn run_captured(kernel: &mut dyn Kernel, artifacts: &Artifacts, code: &str) -> Captured {
    let limits = Limits {
        display_bytes: 1 << 20,
        stream_bytes: 1 << 20,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, Some(artifacts.clone()));
    let outcome = kernel
        .execute(&Request::new(code), &mut capture, &StopSignal::never())
        .await;
    assert_eq!(outcome.expect("the cell runs").ending, Ending::Completed);
    capture.finish()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [python, supervisor, backend, code] = &arguments[..] else {
        println!("usage: large PYTHON SUPERVISOR runner|jupyter CODE");
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let supervisor = Supervisor::new(supervisor, Vec::new());
    let env = std::env::vars_os().collect();
    let (start_timeout, interrupt_grace) = (Duration::from_mins(1), Duration::from_secs(2));
    let context = LaunchContext {
        cwd: dir.path().into(),
        supervisor,
        staging: vec![dir.path().join("staged")],
        sockets: vec![dir.path().join("sockets")],
    };
    let spec = if backend == "runner" {
        KernelSpec::Runner(RunnerSpec {
            python: python.into(),
            env,
            start_timeout,
            interrupt_grace,
            trace: None,
        })
    } else {
        KernelSpec::Jupyter(JupyterSpec {
            kernelspec: Box::new(Kernelspec::ipykernel(&PathBuf::from(python))),
            python: None,
            identified_by: IdentifiedBy::Kernelspec,
            env,
            runtime: dir.path().join("runtime"),
            transport: Transport::Ipc,
            start_timeout,
            interrupt_grace,
        })
    };
    let started = spec.start(&context, &StopSignal::never()).await;
    let mut kernel = started.expect("the kernel starts");
    let artifacts = Artifacts::new(dir.path().join("artifacts"), Retention::default());
    run_captured(kernel.as_mut(), &artifacts, "1").await;
    let before = peak_memory();
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let captured = run_captured(kernel.as_mut(), &artifacts, code).await;
    let execution = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let mut file = tempfile::tempfile().expect("a file");
    let style = JsonStyle::default();
    captured
        .outputs
        .write(&mut file, &style, 3)
        .expect("the file is writable");
    let written = file.metadata().map_or(0, |metadata| metadata.len());
    let report = json!({
        "run": {"wall": execution.0, "cpu": execution.1},
        "write": {"wall": started.elapsed().as_secs_f64(), "cpu": cpu_seconds() - cpu, "bytes": written},
        "peak": {"before": before, "after": peak_memory()},
    });
    println!("{report}");
}
