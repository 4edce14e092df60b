//! Ids for new cells.

use std::collections::HashSet;

use twox_hash::XxHash3_128;

use crate::cell::CellKind;

/// An id in Jupyter's form (eight hexadecimal digits), derived from kind, source and index of the
/// cell, so that the same edit gives the same file.
pub(crate) fn derive_id(
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
