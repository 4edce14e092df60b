//! Timestamps in UTC as RFC 3339 defines them. Times before 1970 are formatted as 1970-01-01T00:00:00Z.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats a time with a resolution of one second: `2026-01-31T12:34:56Z`.
pub fn format_seconds(time: SystemTime) -> String {
    format!("{}Z", date_and_time(since_epoch(time).as_secs()))
}

/// Formats a time with a resolution of one microsecond, as Jupyter does: `2026-01-31T12:34:56.789012Z`.
pub fn format_micros(time: SystemTime) -> String {
    let since = since_epoch(time);
    let seconds = date_and_time(since.as_secs());
    format!("{seconds}.{:06}Z", since.subsec_micros())
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn date_and_time(seconds: u64) -> String {
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Returns the year, month and day that lie `days` days after 1970-01-01.
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
    use super::*;

    fn at(seconds: u64, micros: u32) -> SystemTime {
        UNIX_EPOCH + Duration::new(seconds, micros * 1000)
    }

    #[test]
    fn known_timestamps() {
        let known = [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (1, 20, "1970-01-01T00:00:01.000020Z"),
            // A leap year although it is divisible by 100.
            (951_782_399, 0, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000000Z"),
            (951_827_696, 7, "2000-02-29T12:34:56.000007Z"),
            (1_709_251_199, 0, "2024-02-29T23:59:59.000000Z"),
            (1_709_251_200, 0, "2024-03-01T00:00:00.000000Z"),
            // The ends of a leap year and of another one.
            (1_735_689_599, 0, "2024-12-31T23:59:59.000000Z"),
            (1_735_689_600, 0, "2025-01-01T00:00:00.000000Z"),
            (1_798_761_599, 999_999, "2026-12-31T23:59:59.999999Z"),
            (1_798_761_600, 0, "2027-01-01T00:00:00.000000Z"),
            // No leap year.
            (4_102_444_800, 0, "2100-01-01T00:00:00.000000Z"),
            (4_107_542_399, 0, "2100-02-28T23:59:59.000000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000Z"),
            (253_402_300_799, 0, "9999-12-31T23:59:59.000000Z"),
        ];
        for (seconds, micros, text) in known {
            let time = at(seconds, micros);
            assert_eq!(format_micros(time), text);
            let (seconds, _) = text.split_once('.').unwrap();
            assert_eq!(format_seconds(time), format!("{seconds}Z"));
        }
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(format_seconds(before), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(civil_date(days), (year, month, day));
            let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let last = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == last => (year, month + 1, 1),
                (_, day) => (year, month, day + 1),
            };
        }
        assert_eq!((year, month, day), (2370, 1, 1));
    }
}
