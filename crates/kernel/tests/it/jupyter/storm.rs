//! Many kernels at once.
//!
//! `CELLWRIGHT_TEST_STORM` says how many, and `CELLWRIGHT_TEST_STORM_KERNEL` which program, started with a
//! connection file, is the kernel. It must give back a number that it is told, as Python does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{Jupyter, Transport};
use cellwright_kernel::{Ending, Kernel, Stop};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Room, kernelspec, tell};
use crate::support::{python, run};

/// How many are started at the same time.
const AT_ONCE: usize = 16;

#[tokio::test]
async fn many_kernels_start_at_once_with_sockets_in_the_file_system() {
    tell(&storm(Transport::Ipc).await);
}

#[tokio::test]
async fn many_kernels_start_at_once_on_loopback() {
    tell(&storm(Transport::Tcp).await);
}

/// What it took.
async fn storm(transport: Transport) -> String {
    let count = std::env::var("CELLWRIGHT_TEST_STORM");
    let count: u32 = count.map_or(12, |count| count.parse().unwrap());
    let kernelspec = match std::env::var("CELLWRIGHT_TEST_STORM_KERNEL") {
        Ok(program) => kernelspec("storm", &[&program, "{connection_file}"]),
        Err(_) => Kernelspec::ipykernel(&python()),
    };
    let room = Room::new();
    let mut spec = room.spec(kernelspec);
    spec.transport = transport;
    let spec = Arc::new(spec);
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut kernels = JoinSet::new();
    let begin = Instant::now();
    for number in 0..count {
        let (spec, turns) = (Arc::clone(&spec), Arc::clone(&turns));
        kernels.spawn(async move {
            let turn = turns.acquire_owned().await.unwrap();
            let begin = Instant::now();
            let mut kernel = Jupyter::start(&spec, &Stop::never()).await.unwrap();
            let ready = begin.elapsed();
            let code = (1_000_000 + number).to_string();
            let (heard, outcome) = run(&mut kernel, &code).await;
            assert_eq!(outcome.unwrap().ending, Ending::Completed);
            assert_eq!(heard.line(), format!("=[{code}]"));
            let patience = Stop::never().with_timeout(Duration::from_secs(5));
            let farewell = Box::new(kernel).shutdown(patience).await;
            drop(turn);
            (ready, farewell.in_peace)
        });
    }
    let ended = kernels.join_all().await;
    let slowest = ended.iter().map(|(ready, _)| *ready).max();
    let in_peace = ended.iter().filter(|(_, in_peace)| *in_peace).count();
    assert_eq!(room.left(), Vec::<String>::new());
    format!(
        "{count} kernels in {:?}, the slowest ready after {slowest:?}, {in_peace} ended in peace",
        begin.elapsed()
    )
}
