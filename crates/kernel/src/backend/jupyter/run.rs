//! A cell, from what has to be set before it to how it ended.

use std::pin::pin;
use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::link::Heard;
use cellwright_output::Sink;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::python::Guest;
use super::{DROPPED, DROPS, FAREWELL_STEP, INTERRUPTS, Jupyter, REMEMBERED, Took, often};
use crate::error::{Begun, KernelError};
use crate::exchange::{self, Exchange, Want};
use crate::kernel::{Asked, Outcome, Request, State, Stdin, said};
use crate::process::Exit;
use crate::stop::{Stop, StopReason};

/// How long a kernel that has replied may say nothing before its cell is over without the last word.
const SILENCE: Duration = Duration::from_secs(2);

/// How long a kernel that is idle may take to reply before it is asked something else.
const LOST: Duration = Duration::from_secs(1);

/// The same if its cell was interrupted, which may have hit the reply.
const LOST_BY_US: Duration = Duration::from_millis(200);

/// How long it may take to reply to that.
const NO_REPLY: Duration = Duration::from_secs(10);

impl Jupyter {
    pub(super) async fn run(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &Stop,
    ) -> Result<Outcome, KernelError> {
        self.make_way(stop).await?;
        if let Some(reason) = stop.reason() {
            return Err(KernelError::StoppedEarly { reason });
        }
        self.requests += 1;
        for _ in 0..DROPS {
            self.settle(request, stop).await?;
            if let Some(outcome) = self.run_once(request, sink, stop).await? {
                return Ok(outcome);
            }
            // It did not begin. What was to be set before it may have been dropped, too.
            if let Some(guest) = &mut self.guest {
                guest.unsettled();
            }
            sleep(DROPPED).await;
        }
        let why = "cells of another client fail all the time, and it drops this one for it";
        let why = why.to_owned();
        Err(KernelError::NoAnswer { why })
    }

    /// Runs a cell; `None` if the kernel dropped it because a cell of another client had failed just before.
    async fn run_once(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &Stop,
    ) -> Result<Option<Outcome>, KernelError> {
        let mut content = exchange::execute_request(request);
        if let Some(guest) = &self.guest {
            content["code"] = guest.code(request).into();
            if !request.env.is_empty() {
                // Whether it is still set afterwards.
                content["user_expressions"] = Guest::expressions().into();
            }
        }
        if !self.description.is_python() && matches!(request.stdin, Stdin::Refuse) {
            // What such a kernel does when nobody can answer is gentler than an interrupt, which some do not
            // survive. Those that ask nevertheless are interrupted.
            content["allow_stdin"] = false.into();
        }
        let id = self.send(Channel::Shell, "execute_request", &content);
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((id.clone(), self.requests));
        self.running = Some(id.clone());
        let mut cell = Exchange::new(id, request);
        let followed = self.follow(&mut cell, sink, stop).await;
        self.running = None;
        if !self.description.is_python() && matches!(followed, Ok(None)) {
            self.await_stragglers(&mut cell, sink, stop).await;
        }
        self.tell_refused();
        let stopped = followed?;
        if let (Some(guest), false, Some(reply)) =
            (&mut self.guest, request.env.is_empty(), cell.reply())
        {
            guest.heard(reply);
        }
        if let Some(code) = self.guest.as_ref().and_then(|guest| guest.after(request)) {
            self.silently(code);
        }
        if cell.was_dropped() && stopped.is_none() {
            return Ok(None);
        }
        Ok(Some(cell.outcome(stopped, || self.moans.text(), sink)))
    }

    /// Hears a cell out; how it was stopped, if it was.
    async fn follow(
        &mut self,
        cell: &mut Exchange,
        sink: &mut dyn Sink,
        stop: &Stop,
    ) -> Result<Option<(StopReason, State)>, KernelError> {
        let mut pulled = pin!(stop.pulled());
        let mut stopped: Option<(StopReason, Instant)> = None;
        // An interrupt can fall on deaf ears for a moment, so it is repeated within the grace. So is that
        // of a cell which waits for an answer that nobody has.
        let mut again = often(self.interrupt_grace / INTERRUPTS);
        let mut unanswered: Option<Instant> = None;
        let mut last_word = Instant::now();
        let mut probe = None;
        // What the code waits for somebody to say.
        let mut question: Option<Asked> = None;
        loop {
            // It is over with the reply and the last word on iopub. Should one of them be missing, that is
            // not waited for without end.
            let given_up = match (cell.has_reply(), cell.is_idle()) {
                (true, true) => break,
                (true, false) => Some(last_word + SILENCE),
                (false, true) if probe.is_some() => Some(last_word + NO_REPLY),
                (false, true) if stopped.is_some() => {
                    // What IPython drops then is only the reply. Kernels that drive a program of their own
                    // may have left that behind, at work.
                    let drops_replies = self.description.is_python();
                    drops_replies.then(|| last_word + LOST_BY_US)
                }
                (false, true) => Some(last_word + LOST),
                (false, false) => None,
            };
            // Whatever comes after the cell has raised is not interrupted: it is the reply, or another cell.
            let reacts = cell.has_raised() || cell.is_idle() || cell.has_reply();
            let interrupts = (stopped.is_some() || unanswered.is_some()) && !reacts;
            let heard = tokio::select! {
                biased;
                reason = &mut pulled, if stopped.is_none() => {
                    if !cell.has_reply() {
                        self.interrupt();
                    }
                    again.reset();
                    stopped = Some((reason, Instant::now() + self.interrupt_grace));
                    continue;
                }
                () = patience(stopped, stop), if stopped.is_some() => {
                    self.life.end().await;
                    self.hear_the_rest(cell, sink).await;
                    return Ok(stopped.map(|(reason, _)| (reason, State::Lost)));
                }
                () = moment(unanswered), if unanswered.is_some() && stopped.is_none() => {
                    let what = "it waits for an answer that nobody has, and cannot be interrupted";
                    return Err(self.broken(what.to_owned()).await);
                }
                _ = again.tick(), if interrupts => {
                    self.interrupt();
                    continue;
                }
                () = moment(given_up), if given_up.is_some() => {
                    if cell.has_reply() {
                        self.remark("output_incomplete", "the kernel did not say that this was all: output may be missing");
                        break;
                    }
                    if probe.is_none() {
                        // It answers one after the other: once it answers this, it will not answer the first.
                        probe = Some(self.send(Channel::Shell, "kernel_info_request", &json!({})));
                        last_word = Instant::now();
                        continue;
                    }
                    let what = "it was idle again and had not replied".to_owned();
                    return Err(self.broken(what).await);
                }
                heard = self.link.next() => heard,
                exit = self.life.exited() => return self.ended_in(cell, exit, stopped, sink).await,
                given = said(&mut question), if question.is_some() => {
                    let prompt = question.take().map(|(prompt, _)| prompt);
                    match (given, prompt) {
                        (Some(text), _) => self.answer_question(&text),
                        (None, Some(prompt)) => {
                            cell.refuse(prompt, sink);
                            self.interrupt();
                            again.reset();
                            unanswered = Some(Instant::now() + self.interrupt_grace);
                        }
                        (None, None) => {}
                    }
                    continue;
                }
            };
            if let (Heard::Message(Channel::Shell, message), Some(probe)) = (&heard, &probe)
                && message.parent_id() == *probe
                && !cell.has_reply()
            {
                cell.has_lost_its_reply(stopped.is_some(), &self.life.words(), sink);
                continue;
            }
            match self.take(heard, Some((&mut *cell, &mut *sink))) {
                // What others say is nothing to this cell.
                Took::Fine => continue,
                Took::Want(Want::Answer(_) | Want::Nothing) => {}
                Took::Want(Want::Ask(prompt)) => {
                    question = cell.ask(&prompt).map(|answer| (prompt, answer));
                }
                Took::Want(Want::GoesOn) => unanswered = None,
                Took::Want(Want::Interrupt) if cell.has_reply() => {}
                Took::Want(Want::Interrupt) => {
                    self.interrupt();
                    again.reset();
                    unanswered = Some(Instant::now() + self.interrupt_grace);
                }
                Took::Closed(what) => {
                    if let Ok(exit) = timeout(FAREWELL_STEP, self.life.exited()).await {
                        return self.ended_in(cell, exit, stopped, sink).await;
                    }
                    self.hear_the_rest(cell, sink).await;
                    return Err(self.broken(what).await);
                }
            }
            last_word = Instant::now();
        }
        Ok(stopped.map(|(reason, _)| (reason, State::Kept)))
    }

    /// Sets what a request brings along, before its cell.
    async fn settle(&mut self, request: &Request, stop: &Stop) -> Result<(), KernelError> {
        let Some(guest) = &mut self.guest else {
            return Ok(());
        };
        let Some(code) = guest.settle(request) else {
            return Ok(());
        };
        if request.cwd.is_none() && request.file.is_none() {
            // Should it fail, that is heard later.
            guest.settled(request);
            self.silently(code);
            return Ok(());
        }
        // A cell must not run anywhere but where it was meant to.
        let content = exchange::silent(&code);
        self.request("execute_request", &content, stop).await?;
        if let Some(guest) = &mut self.guest {
            guest.settled(request);
        }
        Ok(())
    }

    /// The process ended while a cell ran. What it said last is still on the way.
    async fn ended_in(
        &mut self,
        cell: &mut Exchange,
        exit: Exit,
        stopped: Option<(StopReason, Instant)>,
        sink: &mut dyn Sink,
    ) -> Result<Option<(StopReason, State)>, KernelError> {
        self.hear_the_rest(cell, sink).await;
        if cell.has_reply() || stopped.is_some() {
            return Ok(stopped.map(|(reason, _)| (reason, State::Lost)));
        }
        // The request was sent: nobody can know any more how far it came.
        Err(self.died(exit, Begun::Maybe).await)
    }
}

async fn moment(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until the time to react is over, or nobody wants to wait for it.
async fn patience(stopped: Option<(StopReason, Instant)>, stop: &Stop) {
    tokio::select! {
        () = moment(stopped.map(|(_, until)| until)) => {}
        () = stop.at_once() => {}
    }
}
