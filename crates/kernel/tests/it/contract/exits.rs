//! `sys.exit()` in cells and in files.

use cellwright_kernel::{Ending, Request, StopSignal};

use super::KernelFixture;
use crate::support::{RecordedEvent, run_request};

pub(super) async fn exiting_is_an_exception_that_ends_only_the_cell(mut fixture: KernelFixture) {
    fixture.output_of("x = 1").await;
    for (code, value) in [
        ("sys.exit(4)", "4"),
        ("sys.exit()", ""),
        ("sys.exit(0)", "0"),
        ("raise SystemExit('bye')", "bye"),
    ] {
        let (recorded, ending) = fixture
            .ending_of(&format!("import sys\n{code}\nx = 2"))
            .await;
        let errors = recorded.events.iter();
        let errors = errors.filter(|event| matches!(event, RecordedEvent::Raised(_)));
        // ipykernel publishes the exit as an error and repeats it in the reply.
        assert_eq!(errors.count(), 1, "{code}: {}", recorded.summary());
        let Ending::Raised(traceback) = ending else {
            panic!("{code}: {ending:?}");
        };
        assert_eq!(
            (&traceback.name[..], &traceback.value[..]),
            ("SystemExit", value)
        );
        let lines = traceback.lines.concat();
        assert!(
            lines.starts_with("An exception has occurred, use %tb"),
            "{lines}"
        );
    }
    assert_eq!(fixture.output_of("x").await, "=[1]");
    // A file ends so, and succeeds with code 0.
    for (code, succeeds) in [
        ("sys.exit()", true),
        ("sys.exit(0)", true),
        ("sys.exit(2)", false),
    ] {
        let request = Request {
            script: Some(fixture.dir.path().join("script.py")),
            ..Request::new(format!("import sys\n{code}\nx = 2"))
        };
        let stop = StopSignal::never();
        let (recorded, outcome) = run_request(fixture.kernel.as_mut(), &request, &stop).await;
        let ending = outcome.unwrap().ending;
        assert_eq!(ending == Ending::Completed, succeeds, "{code}: {ending:?}");
        let mut events = recorded.events.iter();
        let raised = events.any(|event| matches!(event, RecordedEvent::Raised(_)));
        assert_eq!(raised, !succeeds, "{code}");
    }
    assert_eq!(fixture.output_of("x").await, "=[1]");
}
