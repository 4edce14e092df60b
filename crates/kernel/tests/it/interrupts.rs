//! Interrupts at any moment: the cell ends, the kernel and its variables survive, and no frame is damaged.

use std::time::Duration;

use cellwright_kernel::{Ending, KernelError, KernelState, Outcome, Request, StopSignal};

use crate::support::{python, run_code, run_request, start_runner};

const BUSY: [&str; 9] = [
    "while True: print('x' * 50)",
    "while True: print('x' * 50, flush=True)",
    "import sys\nwhile True: print('x'); print('y', file=sys.stderr)",
    "while True: display({'a': 1})",
    "while True:\n    print('a'); display('b')",
    "import asyncio\nwhile True: await asyncio.sleep(0)",
    "import asyncio\nasync def f():\n    print('a'); await asyncio.sleep(0)\nwhile True: await asyncio.gather(f(), f(), f())",
    "import os\nwhile True: os.system('true')",
    "def f(n):\n    try:\n        return f(n + 1)\n    except RecursionError:\n        return n\nwhile True: f(0)",
];

#[tokio::test]
async fn a_cell_can_be_interrupted_at_any_moment() {
    let (mut kernel, _folder) = start_runner(&python()).await;
    // An interrupted import stays broken, in every version of Python.
    run_code(&mut kernel, "import asyncio, os, sys; x = 5")
        .await
        .1
        .unwrap();
    // A fixed seed: the same moments in every run of this test.
    let mut random = 7_u64;
    let mut round = 0;
    while round < 180 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let micros = 300 + (random >> 33) % 12_000;
        let code = BUSY[round % BUSY.len()];
        let stop = StopSignal::never().with_timeout(Duration::from_micros(micros));
        let (_, outcome) = run_request(&mut kernel, &Request::new(code), &stop).await;
        let kept = matches!(
            &outcome,
            Ok(Outcome {
                ending: Ending::Stopped {
                    state: KernelState::Preserved,
                    ..
                },
                ..
            })
        );
        // On a busy machine the cell may not even have begun. Then the round is repeated.
        let early = matches!(outcome, Err(KernelError::StoppedEarly { .. }));
        assert!(
            kept || early,
            "round {round}, {micros} µs: {code}: {outcome:?}"
        );
        let (recorded, outcome) = run_code(&mut kernel, "x").await;
        assert_eq!(
            recorded.summary(),
            "=[5]",
            "round {round}, {micros} µs: {code}"
        );
        assert_eq!(outcome.unwrap().ending, Ending::Completed);
        round += usize::from(kept);
    }
}
