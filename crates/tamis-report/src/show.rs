//! Numbers as people read them.

/// A rate.
pub fn rate(rate: f64) -> String {
    if rate == 0.0 {
        "0".to_owned()
    } else if rate < 1e-4 {
        format!("{rate:.3e}")
    } else {
        format!("{:.4}%", rate * 100.0)
    }
}

/// A count, with commas.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

/// Bytes, in three digits.
pub fn bytes(bytes: f64) -> String {
    short(bytes, &["B", "kB", "MB", "GB", "TB"])
}

/// Operations in a second.
pub fn per_second(operations: f64) -> String {
    short(operations, &["", "thousand", "million", "billion"]).trim_end().to_owned()
}

fn short(number: f64, units: &[&str]) -> String {
    let mut unit = 0;
    let mut value = number;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let shown = [0.0, 12.0, 999.4, 999.6, 1234.0, 12_345.0, 99_960.0, 1e6, 2.5e15].map(bytes);
        let wanted = [
            "0 B", "12 B", "999 B", "1.00 kB", "1.23 kB", "12.3 kB", "100 kB", "1.00 MB", "2500 TB",
        ];
        assert_eq!(shown, wanted);
        assert_eq!(
            (rate(0.0), rate(0.0123), rate(1e-6)),
            ("0".into(), "1.2300%".into(), "1.000e-6".into())
        );
        assert_eq!([0, 999, 1000, 1234567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(per_second(12.0), "12");
        assert_eq!(per_second(3.14e7), "31.4 million");
    }
}
