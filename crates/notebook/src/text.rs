//! The text view: a notebook as one text that people and models edit.
//!
//! [`marker`] is the grammar, [`render`] writes the view, [`parse`] parses an edited one, and [`percent`] converts
//! blocks in the percent format of other tools.

pub(crate) mod marker;
pub(crate) mod parse;
mod percent;
pub(crate) mod render;

pub use parse::{Block, ParsedText, parse};
pub use render::{MarkerStyle, append_cell, append_tagged_cell, render};
