//! How kernels end that do not want to.

use cellwright_kernel::{Ending, Kernel, Stop};

use super::ipykernel;
use crate::support::run;

/// As ipykernel itself does now and then, when its threads end in an unlucky order.
#[tokio::test]
async fn a_kernel_that_stands_still_when_it_should_end_is_ended_however_long_one_would_wait() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()";
    let (_, outcome) = run(&mut kernel, code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let farewell = Box::new(kernel).shutdown(Stop::never()).await;
    assert!(!farewell.in_peace);
    assert!(farewell.exit.is_some());
}
