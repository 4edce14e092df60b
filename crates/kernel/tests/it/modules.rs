//! User modules on a real kernel.

use std::path::Path;
use std::time::Duration;

use cellwright_kernel::modules::{Module, load};
use cellwright_kernel::{Kernel, KernelError, KernelQuery, StopSignal};

use crate::support::{RecordingSink, python, start_runner};

fn module(dir: &Path, name: &str, code: &str) -> Module {
    let path = dir.join(name);
    std::fs::write(&path, code).unwrap();
    let code = code.to_owned();
    Module { path, code }
}

#[tokio::test]
async fn modules_run_in_order_and_a_failing_one_does_not_stop_the_others() {
    let (mut kernel, dir) = start_runner(&python()).await;
    let modules = [
        module(
            dir.path(),
            "a.py",
            "def twice(x):\n    'Two.'\n    return 2 * x\n",
        ),
        module(
            dir.path(),
            "b.py",
            "x = twice(1)\n\nraise ValueError('no')\n",
        ),
        module(dir.path(), "c.py", "def (:\n"),
        module(dir.path(), "d.py", "print('hello'); raise SystemExit(3)\n"),
        module(dir.path(), "e.py", "late = twice(4)\n"),
    ];
    let report = load(&mut kernel, &modules, &[], &StopSignal::never())
        .await
        .unwrap();
    let failures: Vec<(String, Option<u32>, String)> = report
        .failures
        .iter()
        .map(|failure| {
            (
                failure
                    .path
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
                failure.line,
                failure.message.clone(),
            )
        })
        .collect();
    assert_eq!(failures.len(), 3, "{failures:?}");
    assert_eq!(
        failures[0],
        ("b.py".into(), Some(3), "ValueError: no".into())
    );
    assert_eq!((failures[1].0.as_str(), failures[1].1), ("c.py", Some(1)));
    assert!(failures[1].2.starts_with("SyntaxError"), "{failures:?}");
    assert_eq!(failures[2], ("d.py".into(), None, "SystemExit: 3".into()));
    assert_eq!(
        report.printed,
        [(modules[3].path.clone(), "hello".to_owned())]
    );
    assert_eq!(report.requests, 5);
    let mut sink = RecordingSink::default();
    let request = cellwright_kernel::Request::new("late, len(In)");
    kernel
        .execute(&request, &mut sink, &StopSignal::never())
        .await
        .unwrap();
    assert_eq!(sink.summary(), "=[(8, 2)]");
    let helpers = kernel
        .query(&KernelQuery::Helpers, &StopSignal::never())
        .await
        .unwrap();
    let user_helpers: Vec<_> = helpers
        .as_array()
        .unwrap()
        .iter()
        .filter(|helper| !helper["module"].is_null())
        .collect();
    assert_eq!(user_helpers.len(), 1, "{user_helpers:?}");
    assert_eq!(
        (&user_helpers[0]["name"], &user_helpers[0]["doc"]),
        (&"twice".into(), &"Two.".into())
    );
}

#[tokio::test]
async fn stop_signal_stops_a_module_that_does_not_end() {
    let (mut kernel, dir) = start_runner(&python()).await;
    let modules = [module(dir.path(), "a.py", "while True: pass\n")];
    let stop = StopSignal::never().with_timeout(Duration::from_millis(300));
    let error = load(&mut kernel, &modules, &[], &stop).await.unwrap_err();
    assert!(matches!(error, KernelError::StoppedEarly { .. }), "{error}");
}
