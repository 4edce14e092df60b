//! Durations in seconds, as users write them.

use std::time::Duration;

/// Parses a number of seconds, 0 or more.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number of seconds, 0 or more".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    // A value that rounds to zero must not become "no limit".
    if time.is_zero() && seconds > 0.0 {
        return Ok(Duration::from_nanos(1));
    }
    Ok(time)
}
