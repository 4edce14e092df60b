//! Runs a notebook on the built-in runner: `cargo run -p cellwright-execution --example run -- NOTEBOOK`.
//!
//! The program also acts as the supervisor that ends kernels with their owner: it then starts itself with another
//! first argument.

#![expect(clippy::print_stdout, reason = "an example")]

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_execution::{RunOptions, Stores, run_notebook};
use cellwright_kernel::backend::runner::{INTERRUPT_GRACE, RunnerSpec};
use cellwright_kernel::process::{Supervisor, supervisor};
use cellwright_kernel::python::{self, InterpreterSearch};
use cellwright_kernel::session::SpecLauncher;
use cellwright_kernel::{KernelSpec, LaunchContext, StopSignal};

const SUPERVISE: &str = "--supervise";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == SUPERVISE) {
        let owner = std::io::stdin().as_fd().try_clone_to_owned()?;
        return Ok(supervisor::main(&owner)?);
    }
    run()
}

/// Starts this program as a supervisor.
fn own_supervisor() -> std::io::Result<Supervisor> {
    let program = std::env::current_exe()?;
    Ok(Supervisor::new(program, vec![SUPERVISE.into()]))
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let notebook: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("usage: run NOTEBOOK")?
        .into();
    let env: Vec<_> = std::env::vars_os().collect();
    let path = env.iter().find(|(name, _)| name == "PATH");
    let search = InterpreterSearch {
        path: path.map_or_else(Vec::new, |(_, path)| std::env::split_paths(path).collect()),
        ..InterpreterSearch::default()
    };
    let interpreter = python::resolve(&search).map_err(|_| "no Python interpreter found")?;
    let context = LaunchContext {
        cwd: std::env::current_dir()?.into(),
        supervisor: own_supervisor()?,
        staging: vec![std::env::temp_dir().join("cellwright-example")],
        sockets: Vec::new(),
    };
    let spec = KernelSpec::Runner(RunnerSpec {
        python: interpreter.program,
        env,
        start_timeout: Duration::from_mins(1),
        interrupt_grace: INTERRUPT_GRACE,
        trace: None,
    });
    let report = run_notebook(
        &notebook,
        RunOptions::default(),
        Stores::default(),
        Arc::new(SpecLauncher::new(spec, context)),
        StopSignal::new(),
    )
    .await
    .map_err(|failure| failure.message)?;
    for cell in &report.cells {
        let status = cell.status.name();
        println!("cell {} {status}, {:.1} ms", cell.index, cell.duration_ms);
        print!("{}", cell.text());
    }
    if let Some(summary) = report.summary(report.kernel.as_ref()) {
        println!("{summary}");
    }
    Ok(())
}
