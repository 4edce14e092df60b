//! Words for what sessions have to say.

use std::time::SystemTime;

use cellwright_kernel::session::{Loss, Notice};
use cellwright_kernel::signal_name;
use cellwright_output::{Bytes, clean};

use super::Told;

/// How much of what earlier cells said late is shown.
const LATE_CHARACTERS: usize = 2000;

/// Puts a notice of a session into words.
pub(crate) fn tell_session(notice: &Notice) -> Told {
    match notice {
        Notice::Restarted { generation, loss } => {
            let (kind, what) = fate(loss);
            Told::new(
                kind,
                format!(
                    "{what}; this is a fresh kernel (generation {generation}), and the variables of \
                     earlier calls are lost"
                ),
            )
        }
        Notice::Remark(remark) => Told {
            kind: remark.kind.clone().into(),
            text: remark.text.clone(),
        },
        Notice::Late { stream, bytes } => {
            let text = clean::plain(&String::from_utf8_lossy(bytes));
            let shown: String = text.trim_end().chars().take(LATE_CHARACTERS).collect();
            let more = if shown.len() < text.trim_end().len() {
                " […]"
            } else {
                ""
            };
            Told::new(
                "late_output",
                format!("an earlier cell said after its end ({stream}): {shown}{more}"),
            )
        }
        Notice::MemoryHigh { used, limit } => Told::new(
            "memory_high",
            format!(
                "the kernel uses {} of the {} it may use (kernel.memory_limit)",
                Bytes(*used),
                Bytes(*limit)
            ),
        ),
        Notice::MemoryExceeded { used, limit } => Told::new(
            "memory_exceeded",
            format!(
                "the kernel used {}, more than the {} it may use (kernel.memory_limit), and was ended: \
                 its variables are lost",
                Bytes(*used),
                Bytes(*limit)
            ),
        ),
        Notice::Busy {
            owner,
            label,
            since,
        } => {
            let time = SystemTime::now().duration_since(*since).unwrap_or_default();
            Told::new(
                "session_busy",
                format!(
                    "the session has been busy for {} s with `{label}` (owner {owner})",
                    time.as_secs()
                ),
            )
        }
        other => Told::new("other", format!("{other:?}")),
    }
}

/// What became of a kernel.
fn fate(loss: &Loss) -> (&'static str, String) {
    let restarted = "kernel_restarted";
    let evicted = "session_evicted";
    match loss {
        Loss::Died(exit) => {
            let how = match (exit.signal, exit.code) {
                (Some(signal), _) => match signal_name(signal) {
                    Some(name) => format!(" (signal {signal}, {name})"),
                    None => format!(" (signal {signal})"),
                },
                (None, Some(code)) => format!(" (exit code {code})"),
                _ => String::new(),
            };
            (restarted, format!("the kernel had died{how}"))
        }
        Loss::Killed => (
            restarted,
            "the kernel had not reacted to being interrupted and was killed".to_owned(),
        ),
        Loss::Broken => (
            restarted,
            "the kernel had broken down and was killed".to_owned(),
        ),
        Loss::Reset => ("kernel_reset", "the kernel was reset meanwhile".to_owned()),
        Loss::Memory { used, limit } => (
            restarted,
            format!(
                "the kernel had used {} of the {} it may use and was ended",
                Bytes(*used),
                Bytes(*limit)
            ),
        ),
        Loss::Idle(time) => (
            evicted,
            format!(
                "the session had been ended after {} s without use (sessions.idle)",
                time.as_secs_f64()
            ),
        ),
        Loss::Crowded { limit } => (
            evicted,
            format!(
                "the session had been ended to make room: there may be {limit} (sessions.max), and it \
                 had been idle longest"
            ),
        ),
        Loss::Ended => (
            "session_ended",
            "somebody had ended the session for everybody".to_owned(),
        ),
        Loss::Abandoned => (
            "host_lost",
            "the host that kept the session is gone".to_owned(),
        ),
        other => (restarted, format!("{other:?}")),
    }
}
