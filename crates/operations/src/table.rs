//! Tables and durations as text.

/// Formats rows with aligned columns; the first row is the header.
pub fn align_columns(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // `format!` limits a width to 16 bits.
            let padding = width - cell.chars().count() + 2;
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', padding));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Formats a duration: `12s`, `5m`, `3h`, `2d`.
pub fn format_seconds(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}
