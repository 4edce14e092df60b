//! Starts that are cut short, at every stage: there is an error that makes sense, or a kernel that is
//! ready, and nothing is left over.

use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{Jupyter, Transport};
use cellwright_kernel::{Ending, Kernel, KernelError, Stop, StopReason};

use super::{Room, command_of, tell};
use crate::support::{python, run, runs};

/// At how many moments each way to cut a start short is tried.
const MOMENTS: u32 = 10;

/// Ways to cut a start short.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    /// Whoever waits does not want it any more.
    Stop,
    /// Whoever waits has gone.
    Drop,
    /// The kernel's process is killed.
    KillKernel,
    /// The supervisor is killed.
    KillSupervisor,
}

#[tokio::test]
async fn a_start_that_is_stopped_leaves_nothing() {
    tell(&format!("{} were ready", cut_short(Cut::Stop).await));
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_nothing() {
    tell(&format!("{} were ready", cut_short(Cut::Drop).await));
}

#[tokio::test]
async fn a_kernel_that_is_killed_while_it_starts_leaves_nothing() {
    tell(&format!("{} were ready", cut_short(Cut::KillKernel).await));
}

#[tokio::test]
async fn a_supervisor_that_is_killed_while_its_kernel_starts_leaves_nothing() {
    tell(&format!(
        "{} were ready",
        cut_short(Cut::KillSupervisor).await
    ));
}

/// How many were ready nevertheless.
async fn cut_short(cut: Cut) -> u32 {
    let moments = std::env::var("CELLWRIGHT_TEST_MOMENTS");
    let moments: u32 = moments.map_or(MOMENTS, |moments| moments.parse().unwrap());
    let begin = Instant::now();
    let room = Room::new();
    let kernel = room.start(Kernelspec::ipykernel(&python())).await.unwrap();
    let whole = begin.elapsed();
    end(kernel).await;
    room.empties().await;
    let mut ready = 0;
    for moment in 0..moments {
        let after = whole * moment / (moments - 1).max(1);
        if at(cut, after).await {
            ready += 1;
        }
    }
    ready
}

async fn end(kernel: Jupyter) {
    let patience = Stop::never().with_timeout(Duration::from_secs(1));
    Box::new(kernel).shutdown(patience).await;
}

/// Cuts a start short after some time; whether the kernel was ready nevertheless.
async fn at(cut: Cut, after: Duration) -> bool {
    let room = Room::new();
    let mut spec = room.spec(Kernelspec::ipykernel(&python()));
    // Else another one is started.
    spec.transport = Transport::Ipc;
    let (stopper, stop) = Stop::new();
    let started = {
        let start = Jupyter::start(&spec, &stop);
        let scissors = async {
            tokio::time::sleep(after).await;
            match cut {
                Cut::Stop => stopper.stop(StopReason::Cancelled),
                Cut::Drop => return,
                Cut::KillKernel => kill(&room, false),
                Cut::KillSupervisor => kill(&room, true),
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            started = start => Some(started),
            () = scissors => None,
        }
    };
    let mut is_ready = false;
    match started {
        None => assert_eq!(cut, Cut::Drop),
        Some(Ok(mut kernel)) => {
            is_ready = true;
            let (heard, outcome) = run(&mut kernel, "6 * 7").await;
            match outcome {
                Ok(outcome) => {
                    assert_eq!(outcome.ending, Ending::Completed);
                    assert_eq!(heard.line(), "=[42]");
                }
                // It was hit after it was ready.
                Err(error) => assert!(matches!(error, KernelError::Died { .. }), "{error:?}"),
            }
            end(kernel).await;
        }
        Some(Err(error)) => match (cut, &error) {
            (Cut::Stop, KernelError::StoppedEarly { reason }) => {
                assert_eq!(*reason, StopReason::Cancelled);
            }
            (Cut::KillKernel, KernelError::FailedToStart { exit, .. }) => {
                assert_eq!(exit.signal, Some(9));
            }
            // It went without a word about the kernel, or before there was one.
            (Cut::KillSupervisor, KernelError::FailedToStart { exit, .. }) => {
                assert_eq!((exit.code, exit.signal), (None, None));
            }
            (Cut::KillSupervisor, KernelError::Launch { .. }) => {}
            _ => panic!("{cut:?} after {after:?}: {error:?}"),
        },
    }
    room.empties().await;
    is_ready
}

/// Kills a kernel or its supervisor, if it is there yet.
fn kill(room: &Room, supervisor: bool) {
    for pid in room.processes() {
        let is_supervisor = command_of(pid).contains("cellwright-supervisor");
        if is_supervisor == supervisor && runs(pid) {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
}
