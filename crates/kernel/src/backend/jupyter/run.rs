//! Running one cell: applying its context, sending it, and reading its result.

use cellwright_jupyter::connection::Channel;
use cellwright_output::Sink;
use tokio::time::sleep;

use super::python::PythonSupport;
use super::{ABORT_RETRY_DELAY, ABORTS_MAX, Channels, Jupyter, Lifecycle, RECENT_REQUESTS_MAX};
use crate::error::KernelError;
use crate::execution::{self, Execution};
use crate::kernel::{Outcome, Request};
use crate::stop::StopSignal;

impl<C: Channels, L: Lifecycle> Jupyter<C, L> {
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
                content["user_expressions"] = PythonSupport::context_check().into();
            }
        }
        let id = self.send(Channel::Shell, "execute_request", &content);
        if self.recent_requests.len() == RECENT_REQUESTS_MAX {
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
        self.push_widgets(sink);
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

    /// Applies the working directory, variables and search path of a request before its cell.
    pub(super) async fn apply_context(
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
}
