//! The error output of a cell that did not run to its end.

use cellwright_kernel::session::CellEnd;
use cellwright_kernel::{Ending, KernelError, KernelState, StopReason, TimeLimit};
use cellwright_output::Traceback;

/// The error that follows the outputs of a cell that was stopped or whose kernel died. `None` for a cell that ran
/// to its end or raised an exception, which is among its outputs already.
pub fn incomplete_cell_error(end: &CellEnd) -> Option<Traceback> {
    let (name, value) = match &end.result {
        Ok(outcome) => match &outcome.ending {
            Ending::Stopped { reason, state } => {
                (error_name(*reason), describe_stop(*reason, *state))
            }
            _ => return None,
        },
        Err(KernelError::StoppedEarly { reason }) => {
            (error_name(*reason), "the cell was not started".to_owned())
        }
        Err(error @ KernelError::Died { .. }) => ("KernelDied", error.to_string()),
        Err(error) => ("KernelError", error.to_string()),
    };
    Some(error(name, value))
}

fn error(name: &str, value: String) -> Traceback {
    Traceback {
        name: name.to_owned(),
        lines: vec![format!("{name}: {value}")],
        value,
    }
}

fn error_name(reason: StopReason) -> &'static str {
    match reason {
        StopReason::TimedOut { .. } => "CellTimeout",
        StopReason::MemoryLimit { .. } => "MemoryLimit",
        StopReason::Cancelled | StopReason::ShuttingDown | StopReason::Reset => "Cancelled",
    }
}

fn describe_stop(reason: StopReason, state: KernelState) -> String {
    let what = match reason {
        StopReason::TimedOut { limit, after } => {
            let subject = match limit {
                TimeLimit::Total => "run",
                TimeLimit::Cell | TimeLimit::Queue => "cell",
            };
            format!(
                "the {subject} did not finish within {} s",
                after.as_secs_f64()
            )
        }
        StopReason::Cancelled => "the cell was interrupted".to_owned(),
        StopReason::ShuttingDown => "the kernel was shut down while the cell ran".to_owned(),
        StopReason::Reset => "the kernel was reset while the cell ran".to_owned(),
        StopReason::MemoryLimit { limit, .. } => {
            format!("the kernel used more than {limit} bytes of memory")
        }
    };
    match state {
        KernelState::Preserved => what,
        KernelState::Lost => format!("{what}; its kernel was ended"),
    }
}
