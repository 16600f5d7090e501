//! PostgreSQL's decimals in binary: groups of four digits, and where the point is.

use super::binary::unread;
use windlass_export::Unread;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITE: u16 = 0xD000;
const MINUS_INFINITE: u16 = 0xF000;

/// The number as units of that scale.
pub(super) fn units(bytes: &[u8], scale: u32) -> Result<i128, Unread> {
    let short = || unread(&hex::encode(bytes), "its length is not that of a number");
    let (header, digits) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (weight, sign) = (word(2).cast_signed(), word(4));
    match sign {
        NAN => return Err(unread("NaN", NO_NUMBER)),
        INFINITE => return Err(unread("Infinity", NO_NUMBER)),
        MINUS_INFINITE => return Err(unread("-Infinity", NO_NUMBER)),
        _ => {}
    }
    if digits.len() != usize::from(word(0)) * 2 {
        return Err(short());
    }
    let amount = amount(digits, i64::from(weight) * 4 + i64::from(scale));
    let amount = amount.and_then(|amount| i128::try_from(amount).ok());
    let amount =
        amount.ok_or_else(|| unread("a number", "its column has too few digits for it"))?;
    Ok(if sign == NEGATIVE { -amount } else { amount })
}

const NO_NUMBER: &str = "a decimal with a precision cannot hold it; a column without one may";

/// The digits as an integer, when the first group counts ten to the `power`. `None` where it is too
/// large, or has digits behind the units.
fn amount(groups: &[u8], mut power: i64) -> Option<u128> {
    let mut amount: u128 = 0;
    for group in groups.chunks_exact(2) {
        let group = u128::from(u16::from_be_bytes([group[0], group[1]]));
        amount = match power {
            0.. => amount.checked_mul(10_000)?.checked_add(group)?,
            // The point is inside the group.
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
    // Groups of zeros at the end are left out.
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
    fn the_point_may_be_anywhere() {
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
        // 38 digits whose last group is half empty would not fit with its zeros.
        let full = wire(8, 0, &[9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9900]);
        assert_eq!(units(&full, 2).unwrap(), 10i128.pow(38) - 1);
    }

    #[test]
    fn what_is_no_such_number_is_refused() {
        assert_eq!(units(&wire(0, NAN, &[]), 2).unwrap_err().value, "NaN");
        assert_eq!(units(&wire(0, INFINITE, &[]), 2).unwrap_err().value, "Infinity");
        assert!(units(&wire(0, 0, &[1, 5001]), 2).is_err(), "digits would be lost");
        assert!(units(&wire(0, 0, &[1, 0, 1]), 4).is_err(), "digits would be lost");
        assert!(units(&wire(20, 0, &[1]), 2).is_err(), "too large");
        assert!(units(&[0, 1], 2).is_err() && units(&wire(0, 0, &[1])[..9], 2).is_err());
    }
}
