//! [`CellTimers`]: the timers of one running cell.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Interval};

use super::{INTERRUPTS_MAX, sleep_until_some, ticker};
use crate::execution::Execution;
use crate::stop::{StopReason, StopSignal};

/// How long a kernel that has replied may be silent before its cell counts as ended without `idle`.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a kernel that is idle may take to reply before it receives a probe request.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The same if the cell was interrupted: the interrupt may have prevented the reply.
const INTERRUPTED_REPLY_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the kernel may take to reply to the probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The timers of one running cell: its stop, repeated interrupts, refused input and missing replies.
pub(super) struct CellTimers {
    /// How long the cell may run after an interrupt.
    interrupt_grace: Duration,
    /// Whether an interrupt can make the kernel drop the reply and nothing else, as in IPython. Kernels that drive
    /// another program may have left that program running.
    drops_replies: bool,
    /// Why the cell was stopped, and when its grace is over.
    stopped: Option<(StopReason, Instant)>,
    /// An interrupt can be lost, so it is repeated within the grace, also for a cell whose input was refused.
    repeat: Interval,
    /// When the grace of a cell is over whose input was refused.
    input_deadline: Option<Instant>,
    /// When the last message of this cell arrived.
    last_message: Instant,
    /// The `msg_id` of the probe request, if one was sent.
    probe: Option<String>,
}

/// A timer that has fired.
pub(super) enum CellTimer {
    /// The caller requested a stop.
    StopRequested(StopReason),
    /// The cell did not end within its grace, or the caller skips the grace.
    GraceElapsed,
    /// The code still waits for input that was refused.
    InputDeadline,
    /// It is time for the next interrupt.
    RepeatInterrupt,
    /// The reply or `idle` is missing for too long.
    MessageMissing,
}

impl CellTimers {
    pub(super) fn new(interrupt_grace: Duration, drops_replies: bool) -> Self {
        Self {
            interrupt_grace,
            drops_replies,
            stopped: None,
            repeat: ticker(interrupt_grace / INTERRUPTS_MAX),
            input_deadline: None,
            last_message: Instant::now(),
            probe: None,
        }
    }

    /// Waits for the next timer that fires. Cancel-safe.
    pub(super) async fn next_alarm(
        &mut self,
        cell: &Execution,
        stop: &StopSignal,
        stop_requested: Pin<&mut impl Future<Output = StopReason>>,
    ) -> CellTimer {
        let (is_stopped, input_deadline) = (self.is_stopped(), self.input_deadline);
        let message_deadline = self.message_deadline(cell);
        // Messages after an error are the reply or belong to another cell: that must not be interrupted.
        let reacts = cell.has_raised() || cell.is_idle() || cell.has_reply();
        let interrupts = (is_stopped || input_deadline.is_some()) && !reacts;
        tokio::select! {
            biased;
            reason = stop_requested, if !is_stopped => CellTimer::StopRequested(reason),
            () = grace_elapsed(self.stopped, stop), if is_stopped => CellTimer::GraceElapsed,
            () = sleep_until_some(input_deadline), if input_deadline.is_some() && !is_stopped => {
                CellTimer::InputDeadline
            }
            _ = self.repeat.tick(), if interrupts => CellTimer::RepeatInterrupt,
            () = sleep_until_some(message_deadline), if message_deadline.is_some() => {
                CellTimer::MessageMissing
            }
        }
    }

    /// When to stop waiting for the reply or `idle`, if the other one has arrived.
    fn message_deadline(&self, cell: &Execution) -> Option<Instant> {
        let timeout = match (cell.has_reply(), cell.is_idle()) {
            (true, true) | (false, false) => return None,
            (true, false) => IDLE_TIMEOUT,
            (false, true) if self.probe.is_some() => PROBE_TIMEOUT,
            (false, true) if self.is_stopped() => {
                return self
                    .drops_replies
                    .then(|| self.last_message + INTERRUPTED_REPLY_TIMEOUT);
            }
            (false, true) => REPLY_TIMEOUT,
        };
        Some(self.last_message + timeout)
    }

    /// Starts the grace of a cell that was stopped.
    pub(super) fn start_grace(&mut self, reason: StopReason) {
        self.repeat.reset();
        self.stopped = Some((reason, Instant::now() + self.interrupt_grace));
    }

    /// Starts the grace of a cell whose input was refused.
    pub(super) fn start_input_grace(&mut self) {
        self.repeat.reset();
        self.input_deadline = Some(Instant::now() + self.interrupt_grace);
    }

    /// The code does not wait for input any more.
    pub(super) fn clear_input_deadline(&mut self) {
        self.input_deadline = None;
    }

    /// A message of this cell has arrived.
    pub(super) fn record_message(&mut self) {
        self.last_message = Instant::now();
    }

    /// A probe request was sent: the kernel answers requests in order, so its reply shows that the first request will
    /// not be answered.
    pub(super) fn set_probe(&mut self, msg_id: String) {
        self.probe = Some(msg_id);
        self.last_message = Instant::now();
    }

    /// The `msg_id` of the probe request, if one was sent.
    pub(super) fn probe(&self) -> Option<&str> {
        self.probe.as_deref()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Why the cell was stopped, if it was.
    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        self.stopped.map(|(reason, _)| reason)
    }
}

/// Waits until the grace after an interrupt is over, or the caller skips it.
async fn grace_elapsed(stopped: Option<(StopReason, Instant)>, stop: &StopSignal) {
    tokio::select! {
        () = sleep_until_some(stopped.map(|(_, deadline)| deadline)) => {}
        () = stop.forced() => {}
    }
}
