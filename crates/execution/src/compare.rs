//! Compares the outputs of two runs of a notebook.
//!
//! [`compare`] compares the stored outputs of a cell with the outputs of a new run, both in nbformat. Differences
//! that occur in every run (addresses in memory, times, …) are ignored: each kind is a named [`Rule`] that can be
//! switched off. A [`Tolerance`] makes numbers equal that differ a little. [`check_order`] derives from execution counts whether the cells ran in order.
//!
//! ```
//! use cellwright_execution::compare::{Rules, compare};
//! use serde_json::json;
//!
//! let stream = |text: &str| json!({"output_type": "stream", "name": "stdout", "text": text});
//! let stored = [stream("<Model at 0x7f3a5c0d1e80>\nloss "), stream("0.31\n")];
//! let fresh = [stream("<Model at 0x7fd4410a2b50>\nloss 0.29\n")];
//! let differences = compare(&stored, &fresh, Rules::default());
//! assert_eq!(differences.len(), 1);
//! assert_eq!(
//!     differences[0].to_string(),
//!     "output 0, stdout, line 2: was `loss 0.31`, is `loss 0.29`"
//! );
//! ```
//!
//! Metadata of outputs is never compared: it only controls the presentation.

mod bundle;
mod difference;
mod execution_order;
mod item;
mod normalize;
mod pairing;
mod rules;
mod text;
mod tolerance;

pub use difference::{Difference, Side};
pub use execution_order::{OrderProblem, StoredCount, check_order};
pub use rules::{Rule, Rules};
pub use tolerance::Tolerance;

use serde_json::Value;

/// The differences between the stored outputs of a cell and the outputs of a new run, in the order of the outputs;
/// empty if they are equal.
pub fn compare(stored: &[Value], fresh: &[Value], rules: Rules) -> Vec<Difference> {
    let stored = item::output_items(stored, rules);
    let fresh = item::output_items(fresh, rules);
    let mut differences = Vec::new();
    for pair in pairing::pair_items(&stored, &fresh, rules) {
        match pair {
            (Some(stored), Some(fresh)) => differences.extend(stored.differences(fresh, rules)),
            (Some(stored), None) => differences.push(stored.removed()),
            (None, Some(fresh)) => differences.push(fresh.added()),
            (None, None) => {}
        }
    }
    differences
}
