//! Interrupts at any moment: the cell ends, the kernel and its variables stay, and no frame is torn.

use std::time::Duration;

use cellwright_kernel::{Ending, KernelError, Outcome, Request, State, Stop};

use crate::support::{python, run, run_until, runner};

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
async fn any_moment_will_do() {
    let (mut kernel, _folder) = runner(&python()).await;
    // An import that is torn apart stays broken, in every Python.
    run(&mut kernel, "import asyncio, os, sys; x = 5")
        .await
        .1
        .unwrap();
    // The same moments in every run of this test.
    let mut random = 7_u64;
    let mut round = 0;
    while round < 180 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let micros = 300 + (random >> 33) % 12_000;
        let code = BUSY[round % BUSY.len()];
        let stop = Stop::never().with_timeout(Duration::from_micros(micros));
        let (_, outcome) = run_until(&mut kernel, &Request::new(code), &stop).await;
        let kept = matches!(
            &outcome,
            Ok(Outcome {
                ending: Ending::Stopped {
                    state: State::Kept,
                    ..
                },
                ..
            })
        );
        // On a busy machine it may not even have begun. Then there is another moment for it.
        let early = matches!(outcome, Err(KernelError::StoppedEarly { .. }));
        assert!(
            kept || early,
            "round {round}, {micros} µs: {code}: {outcome:?}"
        );
        let (heard, outcome) = run(&mut kernel, "x").await;
        assert_eq!(heard.line(), "=[5]", "round {round}, {micros} µs: {code}");
        assert_eq!(outcome.unwrap().ending, Ending::Completed);
        round += usize::from(kept);
    }
}
