//! The time as headers carry it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as ISO 8601 in UTC.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    written(since.as_secs(), since.subsec_micros())
}

fn written(seconds: u64, micros: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// The date so many days after 1970 began.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the day that some have more is their last, and 400 of them are
    // always as long as any other 400.
    const ERA: u64 = 146_097;
    const TO_1970: u64 = 719_468;
    let day = days + TO_1970;
    let (era, day) = (day / ERA, day % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + late, month, day)
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let known = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(written(seconds, 0), text);
        }
        assert!(written(1, 20).ends_with("01.000020Z"));
    }
}
