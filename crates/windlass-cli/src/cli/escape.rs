//! Escapes control characters in everything that commands print. Keys, errors and names come from
//! records, programs and requests; they must not move the cursor, change the title of the terminal or
//! reverse the direction of a text.
//!
//! The `println!` and `eprintln!` of the commands are the macros in this file. They keep line breaks;
//! texts that may contain their own go through [`one_line`] or [`indented`].

use super::print;
use std::fmt::{Arguments, Write};

macro_rules! println {
    ($($arg:tt)*) => { $crate::cli::escape::to_stdout(format_args!($($arg)*)) };
}

macro_rules! eprintln {
    ($($arg:tt)*) => { $crate::cli::escape::to_stderr(format_args!($($arg)*)) };
}

/// Prints one or more lines.
pub(super) fn to_stdout(text: Arguments<'_>) {
    std::println!("{}", escape(&text.to_string(), |c| is_control(c) && !is_blank(c)));
}

/// The same on standard error.
pub(super) fn to_stderr(text: Arguments<'_>) {
    std::eprintln!("{}", escape(&text.to_string(), |c| is_control(c) && !is_blank(c)));
}

/// A text on one line.
pub(super) fn one_line(text: &str) -> String {
    escape(text, is_control)
}

/// Indents every line but the first, so that no line of the text can pass for output of a command.
pub(super) fn indented(text: &str, by: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{:by$}", ""))
}

/// JSON with control characters written as JSON escapes.
pub(super) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_control(c) && !is_blank(c) {
            // They only occur in strings, and each fits four digits.
            true => _ = write!(out, "\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    out
}

/// Characters that terminals interpret, or that change how a text reads.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_blank(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_escaped(*c)) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // Coloured statuses are the only control characters that commands print themselves.
        if let Some(status) = print::leading_status(rest) {
            out.push_str(&status);
            rest = &rest[status.len()..];
            continue;
        }
        _ = match c {
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
            c => write!(out, "\\u{{{:x}}}", u32::from(c)),
        };
        rest = &rest[c.len_utf8()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_character_is_escaped_and_nothing_else() {
        for c in ('\0'..='\u{ffff}').chain(['🜁', '\u{e0001}']) {
            let text = format!("a{c}b");
            let is_safe = !c.is_control() && one_line(&text) == text;
            let is_bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            assert!(!(is_safe && is_bidi), "{c:?}");
            assert!(!one_line(&text).contains(|c: char| c.is_control()), "{c:?}");
            if c.is_alphanumeric() {
                assert_eq!(one_line(&text), text);
            }
            let document = serde_json::to_string(&text).unwrap();
            let escaped = json(&document);
            assert!(!escaped.contains(|c: char| is_control(c)), "{c:?}: {escaped:?}");
            assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
        assert_eq!(one_line("\u{1b}[1m\r\n\t\u{9b}\u{202e}"), "\\x1b[1m\\r\\n\\t\\u{9b}\\u{202e}");
    }

    #[test]
    fn further_lines_are_indented() {
        assert_eq!(indented("a\nb\n", 3), "a\n   b");
    }
}
