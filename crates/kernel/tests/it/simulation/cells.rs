//! Random cells.

use std::time::Duration;

use cellwright_kernel::backend::scripted::ScriptStep;
use cellwright_kernel::process::Exit;
use cellwright_output::{Stream, Traceback};

use super::model::ModelCell;
use super::rng::SeededRng;

pub(super) fn random_cell(rng: &mut SeededRng, job: usize, cell: usize) -> ModelCell {
    let mut attempt_steps = vec![random_steps(rng, job, cell)];
    if rng.chance(8) {
        let not_begun = vec![ScriptStep::DieBeforeStart(exit())];
        attempt_steps.insert(0, not_begun.clone());
        if rng.chance(25) {
            attempt_steps.insert(0, not_begun);
        }
    }
    let timeout = [None, Some(100), Some(2_000), Some(10_000), Some(30_000)];
    ModelCell {
        attempt_steps,
        timeout: rng.pick(&timeout).map(Duration::from_millis),
        reset: rng.chance(7),
        attempts: 0,
        begun: 0,
        begins: 0,
        ends: 0,
    }
}

fn random_steps(rng: &mut SeededRng, job: usize, cell: usize) -> Vec<ScriptStep> {
    let mut steps = Vec::new();
    if rng.chance(10) {
        let after = rng.pick_millis(&[0, 0, 60, 5_000]);
        let text = format!("late {job}.{cell}");
        steps.push(ScriptStep::PrintLate(after, Stream::Stdout, text));
    }
    match rng.below(100) {
        0..35 => {}
        35..50 => steps.push(ScriptStep::Sleep(rng.pick_millis(&[1, 100, 2_000, 20_000]))),
        50..65 => steps.push(ScriptStep::Raise(Traceback {
            name: "ValueError".to_owned(),
            ..Traceback::default()
        })),
        65..75 => steps.extend([
            ScriptStep::Sleep(rng.pick_millis(&[0, 50, 1_000])),
            ScriptStep::Die(exit()),
        ]),
        75..83 => steps.push(ScriptStep::IgnoreInterrupts),
        83..92 => steps.push(ScriptStep::RunUntilStopped),
        _ => steps.extend((0..20).flat_map(|_| {
            [
                ScriptStep::Print(Stream::Stdout, "some text\n".to_owned()),
                ScriptStep::Sleep(Duration::from_millis(10)),
            ]
        })),
    }
    steps
}

fn exit() -> Exit {
    Exit {
        code: None,
        signal: Some(6),
    }
}
