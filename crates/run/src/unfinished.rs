//! What a notebook says of a cell that did not come to its end.

use cellwright_kernel::session::CellEnd;
use cellwright_kernel::{Ending, KernelError, State, StopReason};
use cellwright_output::Traceback;

/// What is written behind the outputs of a cell that was stopped, or whose kernel died. `None` for a cell
/// that came to its end, if only to an exception, which its outputs tell already.
pub fn unfinished(end: &CellEnd) -> Option<Traceback> {
    let (name, value) = match &end.result {
        Ok(outcome) => match &outcome.ending {
            Ending::Stopped { reason, state } => (name(*reason), words(*reason, *state)),
            Ending::Exited { code } if *code != 0 => ("SystemExit", code.to_string()),
            _ => return None,
        },
        Err(KernelError::StoppedEarly { reason }) => {
            (name(*reason), "the cell was not begun".to_owned())
        }
        Err(error @ KernelError::Died { .. }) => ("KernelDied", error.to_string()),
        Err(error) => ("KernelError", error.to_string()),
    };
    Some(Traceback {
        name: name.to_owned(),
        lines: vec![format!("{name}: {value}")],
        value,
    })
}

fn name(reason: StopReason) -> &'static str {
    match reason {
        StopReason::TimedOut(_) => "CellTimeout",
        StopReason::MemoryLimit { .. } => "MemoryLimit",
        StopReason::Cancelled | StopReason::ShuttingDown | StopReason::Reset => "Cancelled",
    }
}

fn words(reason: StopReason, state: State) -> String {
    let what = match reason {
        StopReason::TimedOut(limit) => {
            format!("the cell did not end within {} s", limit.as_secs_f64())
        }
        StopReason::Cancelled => "the cell was interrupted".to_owned(),
        StopReason::ShuttingDown => "the kernel was shut down while the cell ran".to_owned(),
        StopReason::Reset => "the kernel was reset while the cell ran".to_owned(),
        StopReason::MemoryLimit { limit, .. } => {
            format!("the kernel used more than {limit} bytes of memory")
        }
    };
    match state {
        State::Kept => what,
        State::Lost => format!("{what}; its kernel was ended"),
    }
}
