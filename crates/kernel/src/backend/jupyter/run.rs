//! Running one cell: applying its context, sending it, following its messages until it ends.

use std::ops::ControlFlow;
use std::pin::pin;

use cellwright_jupyter::client::ClientEvent;
use cellwright_jupyter::connection::Channel;
use cellwright_output::Sink;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::cell_clock::{Alarm, CellClock};
use super::python::PythonHooks;
use super::{
    ABORT_RETRY_DELAY, ABORTS_MAX, Handled, Jupyter, REMEMBERED_MAX, SHUTDOWN_STEP_TIMEOUT,
};
use crate::error::{Begun, KernelError};
use crate::execution::{self, Execution, FollowUp};
use crate::kernel::{KernelState, Outcome, PendingInput, Request, Stdin, input_reply};
use crate::process::Exit;
use crate::stop::{StopReason, StopSignal};

impl Jupyter {
    pub(super) async fn run_cell(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<Outcome, KernelError> {
        self.ensure_idle(stop).await?;
        if let Some(reason) = stop.reason() {
            return Err(KernelError::StoppedEarly { reason });
        }
        self.requests += 1;
        for _ in 0..ABORTS_MAX {
            self.apply_context(request, stop).await?;
            if let Some(outcome) = self.run_once(request, sink, stop).await? {
                return Ok(outcome);
            }
            // The cell did not begin. The request that applied its context may have been aborted, too.
            if let Some(hooks) = &mut self.hooks {
                hooks.invalidate_context();
            }
            sleep(ABORT_RETRY_DELAY).await;
        }
        let message = "it keeps aborting this cell because another client's cells fail".to_owned();
        Err(KernelError::QueryFailed { message })
    }

    /// Runs a cell. Returns `None` if the kernel aborted it because a cell of another client had just failed.
    async fn run_once(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<Option<Outcome>, KernelError> {
        let mut content = execution::execute_content(request);
        if let Some(hooks) = &self.hooks {
            content["code"] = hooks.cell_code(request).into();
            if !request.env.is_empty() {
                // The reply then contains whether the variables are still set.
                content["user_expressions"] = PythonHooks::context_check().into();
            }
        }
        if !self.description.is_python() && matches!(request.stdin, Stdin::Refuse) {
            // The kernel then refuses input itself. Some kernels do not survive an interrupt, so that is the last resort: for
            // a kernel that requests input nevertheless.
            content["allow_stdin"] = false.into();
        }
        let id = self.send(Channel::Shell, "execute_request", &content);
        if self.recent_requests.len() == REMEMBERED_MAX {
            self.recent_requests.pop_front();
        }
        self.recent_requests.push_back((id.clone(), self.requests));
        self.running_cell = Some(id.clone());
        let mut cell = Execution::new(id, request);
        let followed = self.follow(&mut cell, sink, stop).await;
        self.running_cell = None;
        if !self.description.is_python() && matches!(followed, Ok(None)) {
            self.await_stragglers(&mut cell, sink, stop).await;
        }
        self.report_rejected_messages();
        let stopped = followed?;
        if let (Some(hooks), false, Some(reply)) =
            (&mut self.hooks, request.env.is_empty(), cell.reply())
        {
            hooks.update_from_reply(reply);
        }
        if let Some(code) = self
            .hooks
            .as_ref()
            .and_then(|hooks| hooks.cleanup_code(request))
        {
            self.send_silent(code);
        }
        if cell.was_aborted() && stopped.is_none() {
            return Ok(None);
        }
        Ok(Some(cell.outcome(
            stopped,
            || self.stderr_tail.text(),
            sink,
        )))
    }

    /// Handles messages until the cell ends. Returns how it was stopped, if it was.
    async fn follow(
        &mut self,
        cell: &mut Execution,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<Option<(StopReason, KernelState)>, KernelError> {
        let mut stop_requested = pin!(stop.requested());
        let mut clock = CellClock::new(self.interrupt_grace, self.description.is_python());
        let mut pending_input: Option<PendingInput> = None;
        // The cell ends with its reply and `idle`. The clock limits the wait if one of them is missing.
        while !(cell.has_reply() && cell.is_idle()) {
            let event = tokio::select! {
                biased;
                alarm = clock.next_alarm(cell, stop, stop_requested.as_mut()) => {
                    match self.handle_alarm(alarm, &mut clock, cell, sink).await? {
                        ControlFlow::Continue(()) => continue,
                        ControlFlow::Break(state) => {
                            return Ok(clock.stop_reason().map(|reason| (reason, state)));
                        }
                    }
                }
                event = self.client.next() => event,
                exit = self.process.exited() => {
                    return self.finish_after_exit(cell, exit, clock.stop_reason(), sink).await;
                }
                answer = input_reply(&mut pending_input), if pending_input.is_some() => {
                    let prompt = pending_input.take().map(|(prompt, _)| prompt);
                    match (answer, prompt) {
                        (Some(text), _) => self.answer_input(&text),
                        (None, Some(prompt)) => {
                            cell.refuse_input(prompt, sink);
                            self.interrupt();
                            clock.start_input_grace();
                        }
                        (None, None) => {}
                    }
                    continue;
                }
            };
            if let (ClientEvent::Message(Channel::Shell, message), Some(probe)) =
                (&event, clock.probe())
                && message.parent_id() == *probe
                && !cell.has_reply()
            {
                let output = self.process.output_tail();
                cell.finish_without_reply(clock.is_stopped(), &output, sink);
                continue;
            }
            match self.handle(event, Some((&mut *cell, &mut *sink))) {
                // Messages of other clients do not concern this cell.
                Handled::Ignored => continue,
                Handled::FollowUp(FollowUp::InputReply(_) | FollowUp::Nothing) => {}
                Handled::FollowUp(FollowUp::RequestInput(prompt)) => {
                    pending_input = cell.request_input(&prompt).map(|answer| (prompt, answer));
                }
                Handled::FollowUp(FollowUp::Resumed) => clock.clear_input_deadline(),
                Handled::FollowUp(FollowUp::Interrupt) if cell.has_reply() => {}
                Handled::FollowUp(FollowUp::Interrupt) => {
                    self.interrupt();
                    clock.start_input_grace();
                }
                Handled::Closed(violation) => {
                    if let Ok(exit) = timeout(SHUTDOWN_STEP_TIMEOUT, self.process.exited()).await {
                        let reason = clock.stop_reason();
                        return self.finish_after_exit(cell, exit, reason, sink).await;
                    }
                    self.drain_remaining(cell, sink).await;
                    return Err(self.end_with_protocol_error(violation).await);
                }
            }
            clock.record_message();
        }
        Ok(clock
            .stop_reason()
            .map(|reason| (reason, KernelState::Preserved)))
    }

    /// Handles a timer of the running cell. Breaks if the cell is over.
    async fn handle_alarm(
        &mut self,
        alarm: Alarm,
        clock: &mut CellClock,
        cell: &mut Execution,
        sink: &mut dyn Sink,
    ) -> Result<ControlFlow<KernelState>, KernelError> {
        match alarm {
            Alarm::StopRequested(reason) => {
                if !cell.has_reply() {
                    self.interrupt();
                }
                clock.start_grace(reason);
            }
            Alarm::GraceElapsed => {
                self.process.kill().await;
                self.drain_remaining(cell, sink).await;
                return Ok(ControlFlow::Break(KernelState::Lost));
            }
            Alarm::InputDeadline => {
                let violation = "it waits for input that was refused, and ignores interrupts";
                return Err(self.end_with_protocol_error(violation.to_owned()).await);
            }
            Alarm::RepeatInterrupt => self.interrupt(),
            Alarm::MessageMissing if cell.has_reply() => {
                let text =
                    "the kernel did not publish `idle` after the cell: output may be missing";
                self.add_notice("output_incomplete", text);
                return Ok(ControlFlow::Break(KernelState::Preserved));
            }
            Alarm::MessageMissing if clock.probe().is_none() => {
                let probe = self.send(Channel::Shell, "kernel_info_request", &json!({}));
                clock.set_probe(probe);
            }
            Alarm::MessageMissing => {
                let violation = "it went idle without sending `execute_reply`".to_owned();
                return Err(self.end_with_protocol_error(violation).await);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Applies the working directory, variables and search path of a request before its cell.
    async fn apply_context(
        &mut self,
        request: &Request,
        stop: &StopSignal,
    ) -> Result<(), KernelError> {
        let Some(hooks) = &mut self.hooks else {
            return Ok(());
        };
        let Some(code) = hooks.apply_context(request) else {
            return Ok(());
        };
        if request.cwd.is_none() && request.script.is_none() {
            // A failure is reported when its reply arrives.
            hooks.context_applied(request);
            self.send_silent(code);
            return Ok(());
        }
        // The cell must not run in another working directory, so the reply is awaited.
        let content = execution::silent_content(&code);
        self.request_reply("execute_request", &content, stop)
            .await?;
        if let Some(hooks) = &mut self.hooks {
            hooks.context_applied(request);
        }
        Ok(())
    }

    /// Reads the last messages of a process that exited while a cell ran.
    async fn finish_after_exit(
        &mut self,
        cell: &mut Execution,
        exit: Exit,
        stop_reason: Option<StopReason>,
        sink: &mut dyn Sink,
    ) -> Result<Option<(StopReason, KernelState)>, KernelError> {
        self.drain_remaining(cell, sink).await;
        if cell.has_reply() || stop_reason.is_some() {
            return Ok(stop_reason.map(|reason| (reason, KernelState::Lost)));
        }
        // The request was sent, so the code may have begun.
        Err(self.died_error(exit, Begun::Maybe).await)
    }
}
