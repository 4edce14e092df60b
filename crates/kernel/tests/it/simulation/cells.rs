//! What cells do.

use std::time::Duration;

use cellwright_kernel::backend::scripted::Step;
use cellwright_kernel::process::Exit;
use cellwright_output::{Stream, Traceback};

use super::dice::Dice;
use super::world::CellState;

pub(super) fn random_cell(dice: &mut Dice, job: usize, cell: usize) -> CellState {
    let mut plays = vec![random_play(dice, job, cell)];
    if dice.chance(8) {
        let unbegun = vec![Step::DieUnbegun(exit())];
        plays.insert(0, unbegun.clone());
        if dice.chance(25) {
            plays.insert(0, unbegun);
        }
    }
    let timeout = [None, Some(100), Some(2_000), Some(10_000), Some(30_000)];
    CellState {
        plays,
        timeout: dice.pick(&timeout).map(Duration::from_millis),
        reset: dice.chance(7),
        attempts: 0,
        begun: 0,
        begins: 0,
        ends: 0,
    }
}

fn random_play(dice: &mut Dice, job: usize, cell: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    if dice.chance(10) {
        let after = dice.millis(&[0, 0, 60, 5_000]);
        let text = format!("late {job}.{cell}");
        steps.push(Step::SayLate(after, Stream::Stdout, text));
    }
    match dice.below(100) {
        0..35 => {}
        35..50 => steps.push(Step::Wait(dice.millis(&[1, 100, 2_000, 20_000]))),
        50..60 => steps.push(Step::Raise(Traceback {
            name: "ValueError".to_owned(),
            ..Traceback::default()
        })),
        60..65 => steps.push(Step::Exit(i32::from(dice.chance(50)))),
        65..75 => steps.extend([Step::Wait(dice.millis(&[0, 50, 1_000])), Step::Die(exit())]),
        75..83 => steps.push(Step::Hang),
        83..92 => steps.push(Step::RunUntilStopped),
        _ => steps.extend((0..20).flat_map(|_| {
            [
                Step::Say(Stream::Stdout, "many words\n".to_owned()),
                Step::Wait(Duration::from_millis(10)),
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
