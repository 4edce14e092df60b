//! Timestamps in RFC 3339, as message headers carry them.

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time in UTC, with microseconds.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    format_utc(since.as_secs(), since.subsec_micros())
}

/// Formats a time since 1970.
fn format_utc(seconds: u64, micros: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// The year, month and day that lie `days` days after 1970-01-01.
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here: the leap day is their last day, and all eras of 400 years have the same length.
    const DAYS_PER_ERA: u64 = 146_097;
    const DAYS_TO_1970: u64 = 719_468;
    let day = days + DAYS_TO_1970;
    let (era, day) = (day / DAYS_PER_ERA, day % DAYS_PER_ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (DAYS_PER_ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::format_utc;

    #[test]
    fn timestamps_follow_the_calendar() {
        let known = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(format_utc(seconds, 0), text);
        }
        assert!(format_utc(1, 20).ends_with("01.000020Z"));
    }
}
