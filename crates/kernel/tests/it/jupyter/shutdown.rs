//! Shutting down kernels that hang.

use cellwright_kernel::{Ending, Kernel, StopSignal};

use super::ipykernel;
use crate::support::run_code;

/// ipykernel hangs occasionally when its threads end in an unlucky order.
#[tokio::test]
async fn a_kernel_that_hangs_at_shutdown_is_killed_even_without_a_time_limit() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()";
    let (_, outcome) = run_code(&mut kernel, code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let report = Box::new(kernel).shutdown(StopSignal::never()).await;
    assert!(!report.graceful);
    assert!(report.exit.is_some());
}
