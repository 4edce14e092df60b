//! Many kernels at once.
//!
//! `CELLWRIGHT_TEST_STORM` sets their number, and `CELLWRIGHT_TEST_STORM_KERNEL` the kernel: a program that is started
//! with a connection file. It must return the value of a number, as Python does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{Jupyter, Transport};
use cellwright_kernel::{Ending, Kernel, StopSignal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{KernelSandbox, kernelspec, print_result};
use crate::support::{python, run_code};

/// How many kernels start concurrently.
const CONCURRENT_STARTS: usize = 16;

#[tokio::test]
async fn many_kernels_start_at_once_over_ipc() {
    print_result(&start_many(Transport::Ipc).await);
}

#[tokio::test]
async fn many_kernels_start_at_once_over_tcp() {
    print_result(&start_many(Transport::Tcp).await);
}

/// Starts the kernels. Returns the measured times.
async fn start_many(transport: Transport) -> String {
    let count = std::env::var("CELLWRIGHT_TEST_STORM");
    let count: u32 = count.map_or(12, |count| count.parse().unwrap());
    let kernelspec = match std::env::var("CELLWRIGHT_TEST_STORM_KERNEL") {
        Ok(program) => kernelspec("start_many", &[&program, "{connection_file}"]),
        Err(_) => Kernelspec::ipykernel(&python()),
    };
    let sandbox = KernelSandbox::new();
    let mut spec = sandbox.spec(kernelspec);
    spec.transport = transport;
    let start = Arc::new((spec, sandbox.context()));
    let permits = Arc::new(Semaphore::new(CONCURRENT_STARTS));
    let mut kernels = JoinSet::new();
    let begin = Instant::now();
    for number in 0..count {
        let (start, permits) = (Arc::clone(&start), Arc::clone(&permits));
        kernels.spawn(async move {
            let permit = permits.acquire_owned().await.unwrap();
            let begin = Instant::now();
            let (spec, context) = &*start;
            let mut kernel = Jupyter::start(spec, context, &StopSignal::never())
                .await
                .unwrap();
            let ready = begin.elapsed();
            let code = (1_000_000 + number).to_string();
            let (recorded, outcome) = run_code(&mut kernel, &code).await;
            assert_eq!(outcome.unwrap().ending, Ending::Completed);
            assert_eq!(recorded.summary(), format!("=[{code}]"));
            let deadline = StopSignal::never().with_timeout(Duration::from_secs(5));
            let report = Box::new(kernel).shutdown(deadline).await;
            drop(permit);
            (ready, report.graceful)
        });
    }
    let ended = kernels.join_all().await;
    let slowest = ended.iter().map(|(ready, _)| *ready).max();
    let graceful = ended.iter().filter(|(_, graceful)| *graceful).count();
    assert_eq!(sandbox.leftovers(), Vec::<String>::new());
    format!(
        "{count} kernels in {:?}, the slowest ready after {slowest:?}, {graceful} exited gracefully",
        begin.elapsed()
    )
}
