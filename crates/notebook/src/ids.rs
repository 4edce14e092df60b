//! Ids for new cells.

use std::collections::HashSet;

use twox_hash::XxHash3_128;

use crate::cell::CellKind;

/// An id in the form that Jupyter uses (eight hexadecimal digits), derived from what the cell is
/// and where it stands: the same edit gives the same file.
pub(crate) fn derive(
    kind: CellKind,
    source: &str,
    index: usize,
    taken: &HashSet<String>,
) -> String {
    let mut attempt = 0u32;
    loop {
        let seed = format!("{attempt} {index} {kind} {source}");
        let hash = XxHash3_128::oneshot(seed.as_bytes());
        let id = format!("{:08x}", hash & 0xffff_ffff);
        if !taken.contains(&id) {
            return id;
        }
        attempt += 1;
    }
}
