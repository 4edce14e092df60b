//! One running cell: converts frames to events and, at the end, to an outcome.

use cellwright_output::{Event, Sink, Traceback};

use super::frame::Frame;
use super::text_router::TextRouter;
use crate::kernel::{
    BoxFuture, Ending, InputAnswers, KernelState, Outcome, Prompt, Request, Stdin,
};
use crate::stop::StopReason;

/// The state of one running cell.
pub(super) struct RunningCell {
    pub(super) id: u64,
    answers: Option<InputAnswers>,
    /// Whether the runner has started the code.
    pub(super) started: bool,
    traceback: Option<Traceback>,
    /// The frame that ends the cell.
    pub(super) done: Option<Frame>,
}

impl RunningCell {
    pub(super) fn new(id: u64, request: &Request) -> Self {
        let answers = match &request.stdin {
            Stdin::Refuse => None,
            Stdin::Answers(answers) => Some(answers.clone()),
        };
        Self {
            id,
            answers,
            started: false,
            traceback: None,
            done: None,
        }
    }

    /// The answer to an input request: the next canned answer, else the caller's, else a refusal (`None`).
    pub(super) fn answer_input(&self, prompt: &Prompt) -> BoxFuture<'static, Option<String>> {
        let answers = self.answers.as_ref();
        match answers.and_then(InputAnswers::next) {
            None => answers
                .and_then(|answers| answers.request_input(prompt.clone()))
                .unwrap_or_else(|| Box::pin(std::future::ready(None))),
            answer => Box::pin(std::future::ready(answer)),
        }
    }

    /// Handles a frame. Returns the prompt of an input request.
    pub(super) fn handle_frame(
        &mut self,
        frame: &mut Frame,
        router: &mut TextRouter,
        sink: &mut dyn Sink,
    ) -> Option<Prompt> {
        if frame.frame_type == "sync" {
            router.text_cell = frame.cell.unwrap_or(router.text_cell);
            return None;
        }
        if frame.id != Some(self.id) {
            router.handle_unrelated(frame);
            return None;
        }
        match frame.frame_type.as_str() {
            "started" => {
                self.started = true;
                router.text_cell = self.id;
            }
            "display" => {
                let bundle = frame.take_bundle();
                match (frame.display_id.take(), frame.update) {
                    (Some(id), true) => sink.push(Event::Update { bundle, id }),
                    (id, _) => sink.push(Event::Display {
                        bundle,
                        id,
                        result: None,
                    }),
                }
            }
            "result" => sink.push(Event::Display {
                bundle: frame.take_bundle(),
                id: None,
                result: Some(frame.count.unwrap_or_default()),
            }),
            "redirect_begin" => sink.push(Event::ShowOnly(true)),
            "redirect_end" => sink.push(Event::ShowOnly(false)),
            "clear" => sink.push(Event::Clear { wait: frame.wait }),
            "error" => {
                let traceback = Traceback {
                    name: std::mem::take(&mut frame.ename),
                    value: std::mem::take(&mut frame.evalue),
                    lines: std::mem::take(&mut frame.traceback),
                };
                let traceback = traceback.shortened(Traceback::SIZE_MAX);
                self.traceback = Some(traceback.clone());
                sink.push(Event::Raised(traceback));
            }
            "refused" => sink.push(Event::InputRefused {
                prompt: std::mem::take(&mut frame.prompt),
            }),
            "input" => {
                return Some(Prompt {
                    text: std::mem::take(&mut frame.prompt),
                    secret: frame.password,
                });
            }
            "done" => self.done = Some(std::mem::take(frame)),
            // A newer runner may send more types of frames, which can be ignored.
            _ => {}
        }
        None
    }

    pub(super) fn outcome(&mut self, stopped: Option<(StopReason, KernelState)>) -> Outcome {
        let done = self.done.take();
        let status = done.as_ref().map_or("", |done| done.status.as_str());
        let traceback = self.traceback.take();
        let ending = match (stopped, status) {
            (Some((reason, state)), _) => Ending::Stopped { reason, state },
            (None, "ok") => Ending::Completed,
            (None, _) => Ending::Raised(traceback.unwrap_or_default()),
        };
        Outcome {
            ending,
            execution_count: done.and_then(|done| done.count),
        }
    }
}
