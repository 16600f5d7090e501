//! Decodes binary decimals of PostgreSQL: groups of four digits with a weight.

use super::binary::unread;
use windlass_export::InvalidValue;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITE: u16 = 0xD000;
const MINUS_INFINITE: u16 = 0xF000;

/// The number in units of this scale.
pub(super) fn units(bytes: &[u8], scale: u32) -> Result<i128, InvalidValue> {
    let short = || unread(&hex::encode(bytes), "its length does not match a decimal");
    let (header, digits) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (weight, sign) = (word(2).cast_signed(), word(4));
    match sign {
        NAN => return Err(unread("NaN", NOT_FINITE)),
        INFINITE => return Err(unread("Infinity", NOT_FINITE)),
        MINUS_INFINITE => return Err(unread("-Infinity", NOT_FINITE)),
        _ => {}
    }
    if digits.len() != usize::from(word(0)) * 2 {
        return Err(short());
    }
    let amount = amount(digits, i64::from(weight) * 4 + i64::from(scale));
    let amount = amount.and_then(|amount| i128::try_from(amount).ok());
    let amount = amount.ok_or_else(|| unread("a number", "the column's precision is too small"))?;
    Ok(if sign == NEGATIVE { -amount } else { amount })
}

const NOT_FINITE: &str = "a decimal with a precision must be finite; use a column without one";

/// The digits as an integer, where the first group counts ten to the `power`. `None` if it is too large or
/// has digits below the unit.
fn amount(groups: &[u8], mut power: i64) -> Option<u128> {
    let mut amount: u128 = 0;
    for group in groups.chunks_exact(2) {
        let group = u128::from(u16::from_be_bytes([group[0], group[1]]));
        amount = match power {
            0.. => amount.checked_mul(10_000)?.checked_add(group)?,
            // The decimal point is inside the group.
            -3..0 => {
                let behind = 10u128.pow(u32::try_from(-power).ok()?);
                if group % behind != 0 {
                    return None;
                }
                amount.checked_mul(10_000 / behind)?.checked_add(group / behind)?
            }
            _ if group == 0 => amount,
            _ => return None,
        };
        power -= 4;
    }
    // The format omits trailing groups of zeros.
    match power + 4 {
        after @ 1.. if amount > 0 => {
            amount.checked_mul(10u128.checked_pow(u32::try_from(after).ok()?)?)
        }
        _ => Some(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(weight: i16, sign: u16, groups: &[u16]) -> Vec<u8> {
        let head = [groups.len() as u16, weight.cast_unsigned(), sign, 2];
        head.iter().chain(groups).flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn the_decimal_point_may_be_anywhere() {
        for (weight, groups, scale, wanted) in [
            (0, vec![12, 5000], 2, 1250),
            (0, vec![12, 5000], 4, 125_000),
            (0, vec![12], 2, 1200),
            (1, vec![12], 2, 12_000_000),
            (-1, vec![50], 4, 50),
            (-1, vec![5000], 1, 5),
            (-2, vec![100], 6, 1),
            (0, vec![], 2, 0),
            (0, vec![7, 0, 0, 0], 2, 700),
        ] {
            assert_eq!(units(&wire(weight, 0, &groups), scale).unwrap(), wanted, "{groups:?}");
            assert_eq!(units(&wire(weight, NEGATIVE, &groups), scale).unwrap(), -wanted);
        }
        // With the zeros of its last group, this number of 38 digits would overflow.
        let full = wire(8, 0, &[9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9900]);
        assert_eq!(units(&full, 2).unwrap(), 10i128.pow(38) - 1);
    }

    #[test]
    fn unrepresentable_numbers_are_refused() {
        assert_eq!(units(&wire(0, NAN, &[]), 2).unwrap_err().value, "NaN");
        assert_eq!(units(&wire(0, INFINITE, &[]), 2).unwrap_err().value, "Infinity");
        assert!(units(&wire(0, 0, &[1, 5001]), 2).is_err(), "digits would be lost");
        assert!(units(&wire(0, 0, &[1, 0, 1]), 4).is_err(), "digits would be lost");
        assert!(units(&wire(20, 0, &[1]), 2).is_err(), "too large");
        assert!(units(&[0, 1], 2).is_err() && units(&wire(0, 0, &[1])[..9], 2).is_err());
    }
}
