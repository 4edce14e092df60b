//! Random tokens, and their comparison.

use std::io;

use cellwright_stdext::hex;

/// Compares two secrets. The time depends only on their lengths, so it does not reveal where they differ.
pub fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let pairs = left.iter().zip(right);
    let difference = pairs.fold(0, |all, (one, other)| {
        std::hint::black_box(all | (one ^ other))
    });
    difference == 0
}

/// Returns 32 random bytes as hexadecimal text.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(&bytes))
}
