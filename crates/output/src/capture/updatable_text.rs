//! [`UpdatableText`]: the text of a finished cell whose displays a later cell may update.

use super::figures_of;
use crate::bundle::Bundle;
use crate::cell_text::CellText;
use crate::display_text;
use crate::figure::Figure;
use crate::limits::Limits;

/// The text of a finished cell.
#[derive(Clone, Debug)]
pub struct UpdatableText {
    text: CellText,
    limits: Limits,
}

impl UpdatableText {
    pub(super) fn new(text: CellText, limits: Limits) -> Self {
        Self { text, limits }
    }

    /// Replaces the text of all displays with an id. Returns whether there are any.
    pub fn update_display(&mut self, bundle: &Bundle, id: &str) -> bool {
        let found = self.text.has_display(id);
        if found {
            let figures: Vec<Figure> = figures_of(bundle).map(|image| image.figure()).collect();
            let text = display_text::select_text(bundle, &figures, &self.limits);
            self.text.update_display(&text.unwrap_or("".into()), id);
        }
        found
    }

    /// The bounded text.
    pub fn into_text(self) -> String {
        self.text.finish().text
    }
}
