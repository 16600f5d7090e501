//! Converts decimals exactly between text and the integers of Arrow.

use arrow_buffer::i256;

/// The most digits of a decimal in 256 bits.
pub(crate) const MAX_DIGITS: usize = 76;
/// The most digits of a decimal in 128 bits.
pub(crate) const MAX_DIGITS_128: usize = 38;

/// The parts of a decimal number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal<'a> {
    negative: bool,
    /// The digits before the point, without leading zeros.
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// Parses a number such as `-12.50`. `None` for other texts, such as `NaN`.
    pub(crate) fn parse(text: &'a str) -> Option<Decimal<'a>> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if digits.len() <= usize::from(digits.contains('.'))
            || !are_digits(whole)
            || !are_digits(fraction)
        {
            return None;
        }
        Some(Decimal { negative, whole: whole.trim_start_matches('0'), fraction })
    }

    /// The number of digits before the point.
    pub(crate) fn whole_digits(&self) -> usize {
        self.whole.len()
    }

    /// The number of digits after the point.
    pub(crate) fn scale(&self) -> usize {
        self.fraction.len()
    }

    /// The number in units of this scale. `None` if it does not fit.
    pub(crate) fn to_i128(self, precision: u8, scale: i8) -> Option<i128> {
        let (fraction, zeros) = self.fitted(precision, scale)?;
        let mut value: i128 = 0;
        // Most numbers fit into 64 bits, for which this is several times faster.
        if self.whole.len() + fraction.len() + zeros <= 18 {
            let mut small: i64 = 0;
            for digit in self.whole.bytes().chain(fraction.bytes()) {
                small = small * 10 + i64::from(digit - b'0');
            }
            for _ in 0..zeros {
                small *= 10;
            }
            value = i128::from(small);
        } else {
            for digit in self.whole.bytes().chain(fraction.bytes()) {
                value = value * 10 + i128::from(digit - b'0');
            }
            for _ in 0..zeros {
                value *= 10;
            }
        }
        Some(if self.negative { -value } else { value })
    }

    /// The same for the wider type.
    pub(crate) fn to_i256(self, precision: u8, scale: i8) -> Option<i256> {
        let (fraction, zeros) = self.fitted(precision, scale)?;
        let sign = if self.negative { "-" } else { "" };
        i256::from_string(&format!("{sign}0{}{fraction}{}", self.whole, "0".repeat(zeros)))
    }

    /// The significant digits of the fraction, and the number of zeros to append.
    fn fitted(&self, precision: u8, scale: i8) -> Option<(&'a str, usize)> {
        let scale = usize::try_from(scale).ok()?;
        let fraction = match self.fraction.split_at_checked(scale) {
            Some((fits, rest)) if rest.bytes().all(|digit| digit == b'0') => fits,
            Some(_) => return None,
            None => self.fraction,
        };
        let fits = self.whole.len() + scale <= usize::from(precision);
        fits.then(|| (fraction, scale - fraction.len()))
    }
}

/// Whether the units have at most this many digits.
pub(crate) fn fits(units: i128, precision: u8) -> bool {
    let limit = 10u128.checked_pow(u32::from(precision));
    limit.is_some_and(|limit| units.unsigned_abs() < limit)
}

/// Writes units of this scale as a decimal number.
pub(crate) fn write(units: &str, scale: i8, out: &mut Vec<u8>) {
    let (sign, digits) = match units.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", units),
    };
    out.extend_from_slice(sign.as_bytes());
    let scale = usize::try_from(scale).unwrap_or(0);
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole.as_bytes() });
    if scale > 0 {
        out.push(b'.');
        out.resize(out.len() + scale - fraction.len(), b'0');
        out.extend_from_slice(fraction.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(units: impl ToString, scale: i8) -> String {
        let mut out = Vec::new();
        write(&units.to_string(), scale, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_fit_exactly_or_are_refused() {
        let fit = |text, precision, scale| Decimal::parse(text)?.to_i128(precision, scale);
        assert_eq!(fit("12.50", 12, 2), Some(1250));
        assert_eq!(fit("-12.5", 12, 2), Some(-1250));
        assert_eq!(fit("12.5000", 12, 2), Some(1250), "trailing zeros are ignored");
        assert_eq!(fit("12.505", 12, 2), None);
        assert_eq!(fit("0001.00", 3, 2), Some(100));
        assert_eq!(fit("10.00", 3, 2), None);
        assert_eq!(fit(".5", 1, 1), Some(5));
        assert_eq!(fit("5.", 1, 0), Some(5));
        assert_eq!(fit(&"9".repeat(38), 38, 0), Some(10i128.pow(38) - 1));
        for wrong in ["", "-", ".", "NaN", "1e5", "1.2.3", "1,5", " 1", "--1", "Infinity"] {
            assert!(Decimal::parse(wrong).is_none(), "{wrong}");
        }
        let wide = Decimal::parse("-1234567890123456789012345678901234567890.12").unwrap();
        let units = wide.to_i256(60, 2).unwrap();
        assert_eq!(written(units, 2), "-1234567890123456789012345678901234567890.12");
    }

    #[test]
    fn units_are_limited_by_their_digits() {
        assert!(fits(999, 3) && fits(-999, 3) && !fits(1000, 3) && !fits(-1000, 3));
        assert!(fits(10i128.pow(38) - 1, 38) && !fits(10i128.pow(38), 38));
        assert!(!fits(i128::MIN, 38));
    }

    proptest! {
        #[test]
        fn units_survive_a_round_trip(units in any::<i64>(), scale in 0i8..25) {
            let text = written(units, scale);
            let read = Decimal::parse(&text).unwrap();
            prop_assert_eq!(read.to_i128(38, scale), Some(i128::from(units)));
            prop_assert_eq!(read.to_i256(76, scale), Some(i256::from_i128(i128::from(units))));
        }
    }
}
