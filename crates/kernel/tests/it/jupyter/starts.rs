//! Starts that are aborted at any stage: they end with a suitable error or a kernel that is ready, and leave no
//! process or file.

use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{Jupyter, Transport};
use cellwright_kernel::{Ending, Kernel, KernelError, StopReason, StopSignal};

use super::{KernelSandbox, command_line, print_result};
use crate::support::{is_running, python, run_code};

/// The number of moments at which each kind of abort is tried.
const MOMENTS: u32 = 10;

/// How a start is aborted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Abort {
    /// The caller stops it.
    StopSignal,
    /// The caller drops the future.
    Drop,
    /// The kernel's process is killed.
    KillKernel,
    /// The supervisor and its watcher are killed.
    KillSupervisor,
}

#[tokio::test]
async fn a_stopped_start_leaves_no_process_or_files() {
    print_result(&format!(
        "{} were ready",
        abort_starts(Abort::StopSignal).await
    ));
}

#[tokio::test]
async fn a_dropped_start_leaves_no_process_or_files() {
    print_result(&format!("{} were ready", abort_starts(Abort::Drop).await));
}

#[tokio::test]
async fn a_kernel_killed_during_its_start_leaves_no_files() {
    print_result(&format!(
        "{} were ready",
        abort_starts(Abort::KillKernel).await
    ));
}

#[tokio::test]
async fn a_supervisor_killed_during_a_start_leaves_no_process_or_files() {
    print_result(&format!(
        "{} were ready",
        abort_starts(Abort::KillSupervisor).await
    ));
}

/// Aborts starts at several moments. Returns how many kernels were ready nevertheless.
async fn abort_starts(abort_kind: Abort) -> u32 {
    let moments = std::env::var("CELLWRIGHT_TEST_MOMENTS");
    let moments: u32 = moments.map_or(MOMENTS, |moments| moments.parse().unwrap());
    let begin = Instant::now();
    let sandbox = KernelSandbox::new();
    let kernel = sandbox
        .start(Kernelspec::ipykernel(&python()))
        .await
        .unwrap();
    let whole = begin.elapsed();
    end(kernel).await;
    sandbox.assert_empty().await;
    let mut ready = 0;
    for moment in 0..moments {
        let after = whole * moment / (moments - 1).max(1);
        if abort_after(abort_kind, after).await {
            ready += 1;
        }
    }
    ready
}

async fn end(kernel: Jupyter) {
    let deadline = StopSignal::never().with_timeout(Duration::from_secs(1));
    Box::new(kernel).shutdown(deadline).await;
}

/// Aborts a start after some time. Returns whether the kernel was ready nevertheless.
async fn abort_after(abort_kind: Abort, after: Duration) -> bool {
    let sandbox = KernelSandbox::new();
    let mut spec = sandbox.spec(Kernelspec::ipykernel(&python()));
    // With `Auto`, a second kernel would be started.
    spec.transport = Transport::Ipc;
    let context = sandbox.context();
    let (stopper, stop) = StopSignal::new();
    let started = {
        let start = Jupyter::start(&spec, &context, &stop);
        let abort = async {
            tokio::time::sleep(after).await;
            match abort_kind {
                Abort::StopSignal => stopper.stop(StopReason::Cancelled),
                Abort::Drop => return,
                Abort::KillKernel => kill(&sandbox, false),
                Abort::KillSupervisor => kill(&sandbox, true),
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            started = start => Some(started),
            () = abort => None,
        }
    };
    let mut is_ready = false;
    match started {
        None => assert_eq!(abort_kind, Abort::Drop),
        Some(Ok(mut kernel)) => {
            is_ready = true;
            let (recorded, outcome) = run_code(&mut kernel, "6 * 7").await;
            match outcome {
                Ok(outcome) => {
                    assert_eq!(outcome.ending, Ending::Completed);
                    assert_eq!(recorded.summary(), "=[42]");
                }
                // It was killed after it was ready.
                Err(error) => assert!(matches!(error, KernelError::Died { .. }), "{error:?}"),
            }
            end(kernel).await;
        }
        Some(Err(error)) => match (abort_kind, &error) {
            (Abort::StopSignal, KernelError::StoppedEarly { reason }) => {
                assert_eq!(*reason, StopReason::Cancelled);
            }
            (Abort::KillKernel, KernelError::FailedToStart { exit, .. }) => {
                assert_eq!(exit.signal, Some(9));
            }
            // Supervisor and watcher died before they reported the exit, or before there was a kernel. The one that is
            // killed last may have ended the kernel.
            (Abort::KillSupervisor, KernelError::FailedToStart { exit, .. }) => {
                assert!(exit.code.is_none() && matches!(exit.signal, None | Some(15)));
            }
            (Abort::KillSupervisor, KernelError::Launch { .. }) => {}
            _ => panic!("{abort_kind:?} after {after:?}: {error:?}"),
        },
    }
    sandbox.assert_empty().await;
    is_ready
}

/// Kills a kernel or its supervisor, if it has started.
fn kill(sandbox: &KernelSandbox, supervisor: bool) {
    for pid in sandbox.processes() {
        let is_supervisor = command_line(pid).contains("cellwright-supervisor");
        if is_supervisor == supervisor && is_running(pid) {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
}
