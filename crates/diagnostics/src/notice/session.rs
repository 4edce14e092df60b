//! Describes the notices of sessions.

use std::time::SystemTime;

use cellwright_kernel::session::{KernelLoss, SessionNotice};
use cellwright_kernel::signal_name;
use cellwright_output::{ByteSize, clean};

use super::{NoticeKind, UserNotice};

/// How many characters of the late output of earlier cells are shown.
const LATE_OUTPUT_CHARS_MAX: usize = 2000;

/// Describes a notice of a session.
pub fn describe_session(notice: &SessionNotice) -> UserNotice {
    match notice {
        SessionNotice::Restarted { generation, loss } => {
            let (kind, reason) = describe_loss(loss);
            UserNotice::new(
                kind,
                format!(
                    "{reason}; this is a new kernel (generation {generation}), and the variables of earlier \
                     calls are lost"
                ),
            )
        }
        SessionNotice::Kernel(notice) => UserNotice {
            kind: NoticeKind::from_name(&notice.kind).unwrap_or(NoticeKind::KernelNotice),
            text: notice.text.clone(),
        },
        SessionNotice::LateText { stream, bytes } => {
            let text = clean::plain(&String::from_utf8_lossy(bytes));
            let shown: String = text
                .trim_end()
                .chars()
                .take(LATE_OUTPUT_CHARS_MAX)
                .collect();
            let more = if shown.len() < text.trim_end().len() {
                " […]"
            } else {
                ""
            };
            UserNotice::new(
                NoticeKind::LateOutput,
                format!("late output of an earlier cell ({stream}): {shown}{more}"),
            )
        }
        SessionNotice::MemoryHigh { used, limit } => UserNotice::new(
            NoticeKind::MemoryHigh,
            format!(
                "the kernel uses {} of its limit of {} (kernel.memory_limit)",
                ByteSize(*used),
                ByteSize(*limit)
            ),
        ),
        SessionNotice::MemoryExceeded { used, limit } => UserNotice::new(
            NoticeKind::MemoryExceeded,
            format!(
                "the kernel used {}, exceeded its limit of {} (kernel.memory_limit) and was stopped; its \
                 variables are lost",
                ByteSize(*used),
                ByteSize(*limit)
            ),
        ),
        SessionNotice::Busy {
            owner,
            label,
            since,
        } => {
            let time = SystemTime::now().duration_since(*since).unwrap_or_default();
            UserNotice::new(
                NoticeKind::SessionBusy,
                format!(
                    "the session has been busy for {} s with `{label}` (owner {owner})",
                    time.as_secs()
                ),
            )
        }
    }
}

/// Describes why the kernel of a session was lost.
fn describe_loss(loss: &KernelLoss) -> (NoticeKind, String) {
    match loss {
        KernelLoss::Died(exit) => {
            let status = match (exit.signal, exit.code) {
                (Some(signal), _) => match signal_name(signal) {
                    Some(name) => format!(" (signal {signal}, {name})"),
                    None => format!(" (signal {signal})"),
                },
                (None, Some(code)) => format!(" (exit code {code})"),
                _ => String::new(),
            };
            (
                NoticeKind::KernelRestarted,
                format!("the kernel died{status}"),
            )
        }
        KernelLoss::Killed => (
            NoticeKind::KernelRestarted,
            "the kernel did not react to an interrupt and was killed".to_owned(),
        ),
        KernelLoss::Broken => (
            NoticeKind::KernelRestarted,
            "the kernel stopped working and was killed".to_owned(),
        ),
        KernelLoss::Reset => (NoticeKind::KernelReset, "the kernel was reset".to_owned()),
        KernelLoss::Memory { used, limit } => (
            NoticeKind::KernelRestarted,
            format!(
                "the kernel used {}, exceeded its limit of {} and was stopped",
                ByteSize(*used),
                ByteSize(*limit)
            ),
        ),
        KernelLoss::Idle(time) => (
            NoticeKind::SessionEvicted,
            format!(
                "the session was stopped after {} s without use (sessions.idle)",
                time.as_secs_f64()
            ),
        ),
        KernelLoss::Evicted { limit } => (
            NoticeKind::SessionEvicted,
            format!(
                "the session was stopped because there were more than {limit} (sessions.max) and it had been \
                 idle longest"
            ),
        ),
        KernelLoss::Stopped => (
            NoticeKind::SessionEnded,
            "the session was stopped for all owners".to_owned(),
        ),
        KernelLoss::HostLost => (
            NoticeKind::HostLost,
            "the host of the session is gone".to_owned(),
        ),
    }
}
