//! Whether two runs of a notebook put out the same.
//!
//! [`compare`] takes the outputs of a cell as they are stored and as they came out now, both as nbformat
//! has them. What differs from run to run although nothing has changed is looked over: each sort of it
//! is a [`Rule`] with a name, which can be switched off. [`order`] tells from execution counts whether
//! the cells ran in order at all.
//!
//! ```
//! use cellwright_run::compare::{Rules, compare};
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
//! Metadata of outputs is never compared: it says how something is to be shown.

mod bundle;
mod difference;
mod item;
mod noise;
mod order;
mod pairing;
mod rules;
mod text;

pub use difference::{Difference, Side};
pub use order::{Disorder, Ran, order};
pub use rules::{Rule, Rules};

use serde_json::Value;

/// What differs between the outputs of a cell as they are stored and as they came out now; empty if
/// they are the same. The differences are in the order of the outputs.
pub fn compare(stored: &[Value], fresh: &[Value], rules: Rules) -> Vec<Difference> {
    let stored = item::items(stored, rules);
    let fresh = item::items(fresh, rules);
    let mut differences = Vec::new();
    for pair in pairing::pair(&stored, &fresh, rules) {
        match pair {
            (Some(stored), Some(fresh)) => differences.extend(stored.differences(fresh, rules)),
            (Some(stored), None) => differences.push(stored.gone()),
            (None, Some(fresh)) => differences.push(fresh.new_one()),
            (None, None) => {}
        }
    }
    differences
}
