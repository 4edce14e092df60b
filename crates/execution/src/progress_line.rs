//! [`ProgressLine`]: the progress bars of widgets as text for viewers. The text redraws its line, as the bars of programs
//! without a page do.

use std::collections::HashSet;

use cellwright_output::{Event, Progress, ProgressState, Stream, view_id};

use super::feed::FeedItem;

/// How many displayed bars are known. Beyond that, a display is shown as it is.
const BARS_MAX: usize = 1000;

/// The line that shows the active progress bars of a cell.
#[derive(Debug, Default)]
pub(super) struct ProgressLine {
    /// The active bars: model ids and texts, in order of display.
    active: Vec<(String, String)>,
    /// The models with bars, whose displays are shown as this line.
    models: HashSet<String>,
    /// Number of characters of the line on the screen.
    drawn: usize,
}

impl ProgressLine {
    /// Whether the line itself shows an event.
    pub(super) fn shows(&self, event: &Event<'_>) -> bool {
        matches!(event, Event::Display { bundle, .. }
            if view_id(bundle).is_some_and(|id| self.models.contains(id)))
    }

    /// The text before an event that the line does not show.
    pub(super) fn before(&mut self, event: &Event<'_>) -> Option<FeedItem> {
        match event {
            Event::Progress(bar) => Some(self.update(bar)),
            Event::Text { .. } | Event::Display { .. } | Event::Raised(_) if self.drawn > 0 => {
                let mut text = String::new();
                self.erase(&mut text);
                Some(line_item(text))
            }
            _ => None,
        }
    }

    /// The text at the end of the cell: bars that are not complete stay on the screen.
    pub(super) fn finish(&mut self) -> Option<FeedItem> {
        let mut text = String::new();
        if !self.active.is_empty() {
            self.draw(&mut text);
            text.push('\n');
        }
        *self = Self::default();
        (!text.is_empty()).then(|| line_item(text))
    }

    fn update(&mut self, bar: &Progress) -> FeedItem {
        if self.models.len() < BARS_MAX {
            self.models.insert(bar.id.clone());
        }
        let at = self.active.iter().position(|(id, _)| *id == bar.id);
        let mut text = String::new();
        match (bar.state, at) {
            (ProgressState::Active, Some(at)) => self.active[at].1.clone_from(&bar.text),
            (ProgressState::Active, None) => {
                self.active.push((bar.id.clone(), bar.text.clone()));
            }
            (ProgressState::Finished, at) => {
                self.erase(&mut text);
                text.push_str(&format!("\r{}\n", bar.text));
                at.map(|at| self.active.remove(at));
            }
            (ProgressState::Removed, at) => {
                at.map(|at| self.active.remove(at));
            }
        }
        if self.active.is_empty() {
            self.erase(&mut text);
        } else {
            self.draw(&mut text);
        }
        line_item(text)
    }

    fn draw(&mut self, out: &mut String) {
        let bars: Vec<&str> = self.active.iter().map(|(_, text)| &text[..]).collect();
        let line = bars.join("  ");
        let length = line.chars().count();
        let padding = " ".repeat(self.drawn.saturating_sub(length));
        out.push_str(&format!("\r{line}{padding}"));
        self.drawn = length;
    }

    fn erase(&mut self, out: &mut String) {
        let drawn = std::mem::take(&mut self.drawn);
        if drawn > 0 {
            out.push_str(&format!("\r{}\r", " ".repeat(drawn)));
        }
    }
}

fn line_item(text: String) -> FeedItem {
    FeedItem::Text(Stream::Stderr, text.into_bytes())
}

#[cfg(test)]
mod tests {
    use cellwright_output::{LiveTarget, LiveText};

    use super::*;

    fn bar(id: &str, text: &str, state: ProgressState) -> Event<'static> {
        Event::Progress(Progress {
            id: id.to_owned(),
            text: text.to_owned(),
            state,
        })
    }

    /// The text that the events cause, as a pipe receives it: redrawn lines in their last state.
    fn shown(events: &[Event<'_>]) -> String {
        let mut line = ProgressLine::default();
        let (mut live, mut out) = (LiveText::new(LiveTarget::Pipe), String::new());
        let mut write = |item: Option<FeedItem>| {
            if let Some(FeedItem::Text(_, bytes)) = item {
                live.push(&bytes, &mut out);
            }
        };
        for event in events {
            write(line.before(event));
            if let Event::Text { stream, bytes } = event {
                write(Some(FeedItem::Text(*stream, bytes.to_vec())));
            }
        }
        write(line.finish());
        live.finish(&mut out);
        let lines = out.lines().map(|line| format!("{}\n", line.trim_end()));
        lines.collect()
    }

    #[test]
    fn bars_are_redrawn_on_one_line() {
        use ProgressState::{Active, Finished, Removed};
        let outer = |text, state| bar("o", text, state);
        let inner = |text, state| bar("i", text, state);
        assert_eq!(
            shown(&[
                outer("0 of 2", Active),
                outer("1 of 2", Active),
                outer("2", Finished)
            ]),
            "2\n"
        );
        assert_eq!(
            shown(&[
                outer("0 of 2", Active),
                inner("a", Active),
                inner("b", Removed)
            ]),
            "0 of 2\n"
        );
        let print = Event::Text {
            stream: Stream::Stderr,
            bytes: b"said\n",
        };
        assert_eq!(
            shown(&[outer("0 of 2", Active), print, outer("1 of 2", Active)]),
            "said\n1 of 2\n"
        );
    }
}
