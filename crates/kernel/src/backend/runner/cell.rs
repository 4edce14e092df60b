//! One cell under way: frames become events, and at last an outcome.

use cellwright_output::{Event, Sink, Traceback};

use super::frame::Frame;
use super::route::Route;
use crate::kernel::{Answers, BoxFuture, Ending, Outcome, Prompt, Request, State, Stdin};
use crate::stop::StopReason;

/// One cell under way.
pub(super) struct CellRun {
    pub(super) id: u64,
    answers: Option<Answers>,
    pub(super) started: bool,
    traceback: Option<Traceback>,
    pub(super) done: Option<Frame>,
}

impl CellRun {
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

    /// The answer to a question, if there is one at hand.
    pub(super) fn next_answer(&self) -> Option<String> {
        self.answers.as_ref()?.next()
    }

    /// Whoever can be asked is.
    pub(super) fn ask(&self, prompt: &Prompt) -> Option<BoxFuture<'static, Option<String>>> {
        self.answers.as_ref()?.ask(prompt.clone())
    }

    /// Takes a frame; a prompt that wants an answer comes back.
    pub(super) fn take(
        &mut self,
        frame: &mut Frame,
        route: &mut Route,
        sink: &mut dyn Sink,
    ) -> Option<Prompt> {
        if frame.t == "border" {
            route.owner = frame.cell.unwrap_or(route.owner);
            return None;
        }
        if frame.id != Some(self.id) {
            route.stray(frame);
            return None;
        }
        match frame.t.as_str() {
            "started" => {
                self.started = true;
                route.owner = self.id;
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
            "aside" => sink.push(Event::Aside(true)),
            "inside" => sink.push(Event::Aside(false)),
            "clear" => sink.push(Event::Clear { wait: frame.wait }),
            "error" => {
                let traceback = Traceback {
                    name: std::mem::take(&mut frame.ename),
                    value: std::mem::take(&mut frame.evalue),
                    lines: std::mem::take(&mut frame.traceback),
                };
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
            // A newer runner may say more; what it means cannot matter to us.
            _ => {}
        }
        None
    }

    pub(super) fn outcome(&mut self, stopped: Option<(StopReason, State)>) -> Outcome {
        let done = self.done.take();
        let status = done.as_ref().map_or("", |done| done.status.as_str());
        let traceback = self.traceback.take();
        let ending = match (stopped, status) {
            (Some((reason, state)), _) => Ending::Stopped { reason, state },
            (None, "ok") => Ending::Completed,
            (None, "exit") => Ending::Exited {
                code: done
                    .as_ref()
                    .and_then(|done| done.exit_code)
                    .and_then(|code| i32::try_from(code).ok())
                    .unwrap_or_default(),
            },
            (None, _) => Ending::Raised(traceback.unwrap_or_default()),
        };
        Outcome {
            ending,
            count: done.and_then(|done| done.count),
        }
    }
}
