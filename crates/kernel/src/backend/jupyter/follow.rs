//! Following a cell that was sent, until it ends: its messages, its timers, its input, the exit of the kernel.

use std::ops::ControlFlow;
use std::pin::pin;

use cellwright_jupyter::connection::Channel;
use cellwright_output::Sink;
use serde_json::json;
use tokio::time::timeout;

use super::cell_timers::{CellTimer, CellTimers};
use super::{
    ChannelEvent, Channels, END_OF_INPUT, EventResult, Jupyter, Lifecycle, SHUTDOWN_STEP_TIMEOUT,
};
use crate::error::{Begun, KernelError};
use crate::execution::{Execution, FollowUp};
use crate::kernel::{KernelState, PendingInput, input_reply};
use crate::process::Exit;
use crate::stop::{StopReason, StopSignal};

/// A cell that was sent and has not ended.
struct RunningCell<'a> {
    cell: &'a mut Execution,
    sink: &'a mut dyn Sink,
    clock: CellTimers,
    /// The input request that waits for the caller's answer.
    pending_input: Option<PendingInput>,
}

/// Something that happened while a cell runs.
enum CellRunEvent {
    CellTimer(CellTimer),
    Event(ChannelEvent),
    Exited(Exit),
    /// The caller has answered an input request; `None`: it refused to.
    Input(Option<String>),
}

/// Whether the cell is over, and the state of its kernel then.
type Progress = ControlFlow<KernelState>;

impl<C: Channels, L: Lifecycle> Jupyter<C, L> {
    /// Handles messages until the cell ends. Returns how it was stopped, if it was.
    pub(super) async fn follow(
        &mut self,
        cell: &mut Execution,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<Option<(StopReason, KernelState)>, KernelError> {
        let mut stop_requested = pin!(stop.requested());
        let mut run = RunningCell {
            cell,
            sink,
            clock: CellTimers::new(self.interrupt_grace, self.description.is_python()),
            pending_input: None,
        };
        let mut state = KernelState::Preserved;
        // The cell ends with its reply and `idle`. The clock limits the wait if one of them is missing.
        while !(run.cell.has_reply() && run.cell.is_idle()) {
            let RunningCell {
                cell,
                clock,
                pending_input,
                ..
            } = &mut run;
            let occurrence = tokio::select! {
                biased;
                alarm = clock.next_alarm(cell, stop, stop_requested.as_mut()) => {
                    CellRunEvent::CellTimer(alarm)
                }
                event = self.channels.next() => CellRunEvent::Event(event),
                exit = self.lifecycle.exited() => CellRunEvent::Exited(exit),
                answer = input_reply(pending_input), if pending_input.is_some() => {
                    CellRunEvent::Input(answer)
                }
            };
            let progress = match occurrence {
                CellRunEvent::CellTimer(alarm) => self.handle_alarm(alarm, &mut run).await?,
                CellRunEvent::Event(event) => self.handle_event(event, &mut run).await?,
                CellRunEvent::Exited(exit) => self.finish_after_exit(exit, &mut run).await?,
                CellRunEvent::Input(answer) => self.handle_input(answer, &mut run),
            };
            if let ControlFlow::Break(last) = progress {
                state = last;
                break;
            }
        }
        Ok(run.clock.stop_reason().map(|reason| (reason, state)))
    }

    /// Handles an event of the channels while a cell runs.
    async fn handle_event(
        &mut self,
        event: ChannelEvent,
        run: &mut RunningCell<'_>,
    ) -> Result<Progress, KernelError> {
        if let (ChannelEvent::Message(Channel::Shell, message), Some(probe)) =
            (&event, run.clock.probe())
            && message.parent_id() == *probe
            && !run.cell.has_reply()
        {
            let output = self.lifecycle.output_tail();
            run.cell
                .finish_without_reply(run.clock.is_stopped(), &output, run.sink);
            return Ok(ControlFlow::Continue(()));
        }
        if matches!(event, ChannelEvent::Reconnected { .. }) && run.clock.probe().is_none() {
            // The request of the cell or its reply may be lost: the kernel replies to the probe after the cell.
            let probe = self.send(Channel::Shell, "kernel_info_request", &json!({}));
            run.clock.set_probe(probe);
        }
        match self.handle(event, Some((&mut *run.cell, &mut *run.sink))) {
            // Messages of other clients do not concern this cell.
            EventResult::Ignored => return Ok(ControlFlow::Continue(())),
            EventResult::FollowUp(follow_up) => self.follow_up(follow_up, run),
            EventResult::Closed(violation) => return self.finish_after_close(violation, run).await,
        }
        run.clock.record_message();
        Ok(ControlFlow::Continue(()))
    }

    /// Does what a message of the cell requires.
    fn follow_up(&mut self, follow_up: FollowUp, run: &mut RunningCell<'_>) {
        match follow_up {
            FollowUp::InputReply(_) | FollowUp::Nothing => {}
            FollowUp::RequestInput(prompt) => {
                let answer = run.cell.request_input(&prompt);
                run.pending_input = answer.map(|answer| (prompt, answer));
            }
            FollowUp::Resumed => run.clock.clear_input_deadline(),
            FollowUp::Interrupt if run.cell.has_reply() => {}
            FollowUp::Interrupt => {
                self.interrupt();
                run.clock.start_input_grace();
            }
        }
    }

    /// Handles the caller's answer to an input request.
    fn handle_input(&mut self, answer: Option<String>, run: &mut RunningCell<'_>) -> Progress {
        let prompt = run.pending_input.take().map(|(prompt, _)| prompt);
        match (answer, prompt) {
            (Some(text), _) => self.answer_input(&text),
            (None, Some(prompt)) => {
                run.cell.refuse_input(prompt, run.sink);
                if self.accepts_end_of_input() {
                    self.answer_input(END_OF_INPUT);
                } else {
                    self.interrupt();
                    run.clock.start_input_grace();
                }
            }
            (None, None) => {}
        }
        ControlFlow::Continue(())
    }

    /// Handles a timer of the running cell.
    async fn handle_alarm(
        &mut self,
        alarm: CellTimer,
        run: &mut RunningCell<'_>,
    ) -> Result<Progress, KernelError> {
        match alarm {
            CellTimer::StopRequested(reason) => {
                if !run.cell.has_reply() {
                    self.interrupt();
                }
                run.clock.start_grace(reason);
            }
            CellTimer::GraceElapsed => {
                self.lifecycle.kill().await;
                self.drain_remaining(run.cell, run.sink).await;
                return Ok(ControlFlow::Break(KernelState::Lost));
            }
            CellTimer::InputDeadline => {
                let violation = "it waits for input that was refused, and ignores interrupts";
                return Err(self.end_with_protocol_error(violation.to_owned()).await);
            }
            CellTimer::RepeatInterrupt => self.interrupt(),
            CellTimer::MessageMissing if run.cell.has_reply() => {
                let text =
                    "the kernel did not publish `idle` after the cell: output may be missing";
                self.add_notice("output_incomplete", text);
                return Ok(ControlFlow::Break(KernelState::Preserved));
            }
            CellTimer::MessageMissing if run.clock.probe().is_none() => {
                let probe = self.send(Channel::Shell, "kernel_info_request", &json!({}));
                run.clock.set_probe(probe);
            }
            CellTimer::MessageMissing => {
                let violation = "it went idle without sending `execute_reply`".to_owned();
                return Err(self.end_with_protocol_error(violation).await);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ends a cell whose kernel has closed a channel: the kernel is exiting, or violates the protocol.
    async fn finish_after_close(
        &mut self,
        violation: String,
        run: &mut RunningCell<'_>,
    ) -> Result<Progress, KernelError> {
        if let Ok(exit) = timeout(SHUTDOWN_STEP_TIMEOUT, self.lifecycle.exited()).await {
            return self.finish_after_exit(exit, run).await;
        }
        self.drain_remaining(run.cell, run.sink).await;
        Err(self.end_with_protocol_error(violation).await)
    }

    /// Reads the last messages of a process that exited while a cell ran.
    async fn finish_after_exit(
        &mut self,
        exit: Exit,
        run: &mut RunningCell<'_>,
    ) -> Result<Progress, KernelError> {
        self.drain_remaining(run.cell, run.sink).await;
        if run.cell.has_reply() || run.clock.is_stopped() {
            return Ok(ControlFlow::Break(KernelState::Lost));
        }
        // The request was sent, so the code may have begun.
        Err(self.died_error(exit, Begun::Maybe).await)
    }
}
