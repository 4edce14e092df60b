//! `input()` with and without answers.

use cellwright_kernel::{Ending, Request, Stdin, StopSignal};

use super::KernelFixture;
use crate::support::{RecordedEvent, RecordingSink, run_request};

fn refused_prompts(recorded: &RecordingSink) -> Vec<&str> {
    let events = recorded.events.iter();
    events
        .filter_map(|event| match event {
            RecordedEvent::InputRefused(prompt) => Some(&prompt[..]),
            _ => None,
        })
        .collect()
}

pub(super) async fn input_without_answers_is_refused(mut fixture: KernelFixture) {
    let (recorded, ending) = fixture.ending_of("name = input('Who? ')").await;
    let Ending::Raised(traceback) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(traceback.name, "StdinNotImplementedError");
    let text = traceback.lines.concat();
    assert!(!text.contains("KeyboardInterrupt"), "{text}");
    // ipykernel refuses it without a request that has the prompt; the traceback has the line.
    assert!(text.contains("Who? "), "{text}");
    assert_eq!(
        refused_prompts(&recorded).len(),
        1,
        "{}",
        recorded.summary()
    );

    // The code can handle it, as under nbclient.
    for asks in ["input('Who? ')", "__import__('getpass').getpass()"] {
        let code =
            format!("try:\n    x = {asks}\nexcept Exception as e:\n    x = type(e).__name__\nx");
        assert_eq!(
            fixture.output_of(&code).await.rsplit(' ').next(),
            Some("=['StdinNotImplementedError']")
        );
    }
    assert_eq!(fixture.output_of("1 + 1").await, "=[2]");
}

pub(super) async fn input_is_answered(mut fixture: KernelFixture) {
    let mut request = Request::new(
        "a = input('A? ')\nb = input('B? ')\nprint(a + b)\ntry:\n    input('C? ')\nexcept EOFError:\n    print('no more')\ninput('D? ')",
    );
    request.stdin = Stdin::Answers(["x", "y"].into_iter().collect());
    let (recorded, outcome) =
        run_request(fixture.kernel.as_mut(), &request, &StopSignal::never()).await;
    let printed = String::from_utf8(recorded.stdout()).unwrap();
    assert!(
        printed.contains("xy\n") && printed.ends_with("no more\n"),
        "{printed}"
    );
    assert_eq!(refused_prompts(&recorded), ["C? ", "D? "]);
    let ending = outcome.unwrap().ending;
    let Ending::Raised(traceback) = &ending else {
        panic!("{ending:?}")
    };
    assert!(
        !traceback.lines.concat().contains("KeyboardInterrupt"),
        "{traceback:?}"
    );
}
