//! Numbers as text without the formatting machinery, which would cost more than the rest of a
//! message.

/// Writes `value` with at least `width` digits into the end of `digits` and returns them.
pub(crate) fn push_padded(value: u64, width: u8, digits: &mut [u8; 20]) -> &str {
    let width = usize::from(width).clamp(1, digits.len());
    let mut rest = value;
    let mut start = digits.len();
    while rest > 0 || digits.len() - start < width {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    std::str::from_utf8(&digits[start..]).unwrap_or_default()
}

/// Appends `value` with at least `width` digits.
pub(super) fn unsigned(value: u64, width: u8, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    out.extend_from_slice(push_padded(value, width, &mut digits).as_bytes());
}

/// Appends `value` with its sign if negative.
pub(super) fn signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(value.unsigned_abs(), 1, out);
}

/// Appends `value / 10^decimals`.
pub(super) fn fixed(value: i64, decimals: u8, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let scale = 10u64.pow(u32::from(decimals));
    unsigned(value.unsigned_abs() / scale, 1, out);
    out.push(b'.');
    unsigned(value.unsigned_abs() % scale, decimals, out);
}

pub(super) fn digits(value: u64) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The text is that of the standard library.
        #[test]
        fn numbers_are_written_as_the_library_writes_them(
            value: i64, width in 0u8..20, small in -1_000_000_000i64..1_000_000_000,
        ) {
            let mut out = Vec::new();
            signed(value, &mut out);
            prop_assert_eq!(&out, &value.to_string().into_bytes());
            out.clear();
            unsigned(value.unsigned_abs(), width, &mut out);
            let expected = format!("{:0width$}", value.unsigned_abs(), width = usize::from(width));
            prop_assert_eq!(&out, &expected.into_bytes());
            prop_assert_eq!(digits(value.unsigned_abs()), value.unsigned_abs().to_string().len());
            out.clear();
            fixed(small, 3, &mut out);
            prop_assert_eq!(&out, &format!("{:.3}", small as f64 / 1e3).into_bytes());
        }
    }
}
