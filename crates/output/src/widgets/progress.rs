//! Progress bars of widgets as text: the boxes, labels and bars of `tqdm.notebook`, and `IntProgress` and
//! `FloatProgress` on their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Model;

/// Time between two reports of one bar.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// How many displays are watched.
const BARS_MAX: usize = 100;

/// The largest number of models in a bar.
const PARTS_MAX: usize = 20;

/// Characters of a bar.
const BAR_WIDTH: usize = 10;

/// The line of a progress bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The id of the model that is displayed.
    pub id: String,
    /// The line.
    pub text: String,
    /// Whether more follows.
    pub state: ProgressState,
}

/// Whether a progress bar still changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressState {
    /// It advances.
    Active,
    /// It is complete.
    Finished,
    /// It is not displayed any more.
    Removed,
}

/// The displayed progress bars.
#[derive(Debug, Default)]
pub(super) struct ShownBars {
    bars: Vec<ShownBar>,
}

#[derive(Debug)]
struct ShownBar {
    /// The model that is displayed.
    root: String,
    /// The models of which the line consists.
    parts: BTreeSet<String>,
    text: String,
    state: ProgressState,
    changed: bool,
    reported: Instant,
}

/// A line that is built from models.
#[derive(Default)]
struct Line {
    text: String,
    parts: BTreeSet<String>,
    /// Whether there is a bar, and whether all bars are complete.
    bars: Option<bool>,
}

impl ShownBars {
    pub(super) fn mark_changed(&mut self, id: &str) {
        for bar in &mut self.bars {
            bar.changed |= bar.parts.contains(id);
        }
    }

    /// Adds a display. Returns its bar, if it has one.
    pub(super) fn show(
        &mut self,
        root: &str,
        models: &BTreeMap<String, Model>,
    ) -> Option<Progress> {
        let line = Line::of(root, models)?;
        self.bars.retain(|bar| bar.root != root);
        if self.bars.len() == BARS_MAX {
            self.bars.remove(0);
        }
        let bar = ShownBar {
            root: root.to_owned(),
            state: line.state(),
            parts: line.parts,
            text: line.text,
            changed: false,
            reported: Instant::now(),
        };
        let progress = bar.to_progress();
        self.bars.push(bar);
        Some(progress)
    }

    /// The bars whose lines have changed. Unless `all` is set, one that was reported a moment ago waits.
    pub(super) fn take_changed(
        &mut self,
        models: &BTreeMap<String, Model>,
        all: bool,
    ) -> Vec<Progress> {
        let mut changed = Vec::new();
        let now = Instant::now();
        for bar in &mut self.bars {
            let waits = !all && now.duration_since(bar.reported) < REPORT_INTERVAL;
            if !bar.changed || waits {
                continue;
            }
            bar.changed = false;
            bar.reported = now;
            match Line::of(&bar.root, models) {
                Some(line) if line.text == bar.text && line.state() == bar.state => continue,
                Some(line) => {
                    bar.state = line.state();
                    bar.text = line.text;
                    bar.parts = line.parts;
                }
                None => bar.state = ProgressState::Removed,
            }
            changed.push(bar.to_progress());
        }
        self.bars.retain(|bar| bar.state != ProgressState::Removed);
        changed
    }
}

impl ShownBar {
    fn to_progress(&self) -> Progress {
        Progress {
            id: self.root.clone(),
            text: self.text.clone(),
            state: self.state,
        }
    }
}

impl Line {
    /// The line of a model; `None` if it is no progress bar.
    fn of(root: &str, models: &BTreeMap<String, Model>) -> Option<Self> {
        let mut line = Self::default();
        line.add(root, models)?;
        line.bars?;
        Some(line)
    }

    fn add(&mut self, id: &str, models: &BTreeMap<String, Model>) -> Option<()> {
        let model = models.get(id)?;
        // A model that contains itself has no end.
        if self.parts.len() == PARTS_MAX || !self.parts.insert(id.to_owned()) {
            return None;
        }
        let member = |name: &str| model.state.get(name);
        let text = |name: &str| member(name).and_then(Value::as_str).unwrap_or_default();
        match model.name() {
            // `tqdm` hides a bar that it does not leave behind.
            "HBoxModel" if member("visible") == Some(&Value::Bool(false)) => return None,
            "HBoxModel" | "BoxModel" => {
                let children = member("children").and_then(Value::as_array)?;
                for child in children.iter().filter_map(Value::as_str) {
                    self.add(child.strip_prefix("IPY_MODEL_")?, models)?;
                }
            }
            "HTMLModel" | "HTMLMathModel" | "LabelModel" => {
                self.text.push_str(&plain_text(text("value")));
            }
            "FloatProgressModel" | "IntProgressModel" => {
                let number = |name: &str| member(name).and_then(Value::as_f64);
                let (min, max) = (number("min").unwrap_or(0.0), number("max").unwrap_or(100.0));
                let value = number("value").unwrap_or(min);
                self.text.push_str(text("description"));
                // A bar without a known end is full from the start.
                let endless = text("bar_style") == "info";
                if !endless {
                    self.push_bar((value - min) / (max - min));
                }
                // `tqdm` sets the style last, after the texts of the last step.
                let complete = matches!(text("bar_style"), "success" | "danger");
                let single = self.parts.len() == 1 && value >= max && !endless;
                self.bars = Some((complete || single) && self.bars.unwrap_or(true));
            }
            _ => return None,
        }
        Some(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "eighths of characters, from 0 to 80"
    )]
    fn push_bar(&mut self, fraction: f64) {
        const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let fraction = if fraction.is_finite() {
            fraction.clamp(0.0, 1.0)
        } else {
            0.0
        };
        let eighths = (fraction * (BAR_WIDTH * PARTS.len()) as f64) as usize;
        let (whole, rest) = (eighths / PARTS.len(), eighths % PARTS.len());
        self.text.push('|');
        self.text.push_str(&"█".repeat(whole));
        self.text.push_str(PARTS[rest]);
        let drawn = whole + usize::from(rest > 0);
        self.text.push_str(&" ".repeat(BAR_WIDTH - drawn));
        self.text.push('|');
    }

    fn state(&self) -> ProgressState {
        if self.bars == Some(true) {
            ProgressState::Finished
        } else {
            ProgressState::Active
        }
    }
}

/// The text of a short piece of HTML, on one line.
fn plain_text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        match rest[start..].find('>') {
            Some(end) => rest = &rest[start + end + 1..],
            None => break,
        }
    }
    if !rest.starts_with('<') {
        text.push_str(rest);
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&nbsp;", " "),
        ("\u{a0}", " "),
        // `tqdm` pads with spaces that have the width of a digit.
        ("\u{2007}", " "),
        ("&amp;", "&"),
    ];
    for (entity, character) in entities {
        text = text.replace(entity, character);
    }
    text.replace(['\n', '\r'], " ")
}
