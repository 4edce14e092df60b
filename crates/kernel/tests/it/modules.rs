//! Modules of the user, run on a real kernel.

use std::path::Path;
use std::time::Duration;

use cellwright_kernel::modules::{Module, load};
use cellwright_kernel::{Kernel, KernelError, Question, Stop};

use crate::support::{Heard, python, runner};

fn module(folder: &Path, name: &str, code: &str) -> Module {
    let path = folder.join(name);
    std::fs::write(&path, code).unwrap();
    let code = code.to_owned();
    Module { path, code }
}

#[tokio::test]
async fn modules_run_in_order_and_a_failing_one_stops_nothing() {
    let (mut kernel, folder) = runner(&python()).await;
    let modules = [
        module(
            folder.path(),
            "a.py",
            "def twice(x):\n    'Two.'\n    return 2 * x\n",
        ),
        module(
            folder.path(),
            "b.py",
            "x = twice(1)\n\nraise ValueError('no')\n",
        ),
        module(folder.path(), "c.py", "def (:\n"),
        module(
            folder.path(),
            "d.py",
            "print('hello'); raise SystemExit(3)\n",
        ),
        module(folder.path(), "e.py", "late = twice(4)\n"),
    ];
    let loaded = load(&mut kernel, &modules, &[], &Stop::never())
        .await
        .unwrap();
    let told: Vec<(String, Option<u32>, String)> = loaded
        .failures
        .iter()
        .map(|one| {
            (
                one.path.file_name().unwrap().to_string_lossy().into_owned(),
                one.line,
                one.what.clone(),
            )
        })
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], ("b.py".into(), Some(3), "ValueError: no".into()));
    assert_eq!((told[1].0.as_str(), told[1].1), ("c.py", Some(1)));
    assert!(told[1].2.starts_with("SyntaxError"), "{told:?}");
    assert_eq!(
        told[2],
        ("d.py".into(), None, "it asked to exit with code 3".into())
    );
    assert_eq!(
        loaded.printed,
        [(modules[3].path.clone(), "hello".to_owned())]
    );
    assert_eq!(loaded.requests, 5);
    let mut heard = Heard::default();
    let request = cellwright_kernel::Request::new("late, len(In)");
    kernel
        .execute(&request, &mut heard, &Stop::never())
        .await
        .unwrap();
    assert_eq!(heard.line(), "=[(8, 2)]");
    let helpers = kernel
        .ask(&Question::Helpers, &Stop::never())
        .await
        .unwrap();
    let mine: Vec<_> = helpers
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| !one["module"].is_null())
        .collect();
    assert_eq!(mine.len(), 1, "{mine:?}");
    assert_eq!(
        (&mine[0]["name"], &mine[0]["doc"]),
        (&"twice".into(), &"Two.".into())
    );
}

#[tokio::test]
async fn a_module_that_does_not_end_is_stopped_with_the_wait_for_it() {
    let (mut kernel, folder) = runner(&python()).await;
    let modules = [module(folder.path(), "a.py", "while True: pass\n")];
    let stop = Stop::never().with_timeout(Duration::from_millis(300));
    let error = load(&mut kernel, &modules, &[], &stop).await.unwrap_err();
    assert!(matches!(error, KernelError::StoppedEarly { .. }), "{error}");
}
