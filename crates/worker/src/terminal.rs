//! Text from elsewhere (names, errors, log lines), made fit to be shown to people.
//!
//! Control characters in it could move the cursor, retitle the window or make a failure look like a success; characters that
//! turn the direction of writing can do the latter too. They are shown escaped, as JSON writes them, so that a JSON document
//! still means the same afterwards.

use std::fmt::Write;

/// The longest sequence that sets a colour; a longer one sets none.
const SEQUENCE_MAX: usize = 64;
const RESET: &str = "\x1b[0m";

/// In one line, whatever is in it.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| put(c, &mut out));
    out
}

/// With its line breaks and tabs.
pub fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            c => put(c, &mut out),
        }
    }
    out
}

fn put(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        c if is_harmful(c) => drop(write!(out, "\\u{:04x}", u32::from(c))),
        c => out.push(c),
    }
}

fn is_harmful(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A stream of text for a terminal: colours go through, everything else that a terminal would obey is shown escaped. A
/// carriage return, with which programs redraw a line, ends the line.
#[derive(Default)]
pub struct Colours {
    /// The beginning of a sequence.
    held: String,
    returned: bool,
    coloured: bool,
}

impl Colours {
    pub fn feed(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        text.chars().for_each(|c| self.take(c, &mut out));
        out
    }

    /// After the last piece: what was held back, and the colours as they were before.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        self.let_go(&mut out);
        if std::mem::take(&mut self.coloured) {
            out.push_str(RESET);
        }
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        if !self.held.is_empty() {
            match c {
                '[' if self.held.len() == 1 => return self.held.push(c),
                '0'..='9' | ';' | ':' if self.held.len() > 1 && self.held.len() < SEQUENCE_MAX => {
                    return self.held.push(c);
                }
                'm' if self.held.len() > 1 && is_colour(&self.held[2..]) => {
                    self.coloured = !matches!(&self.held[2..], "" | "0");
                    out.push_str(&std::mem::take(&mut self.held));
                    return out.push(c);
                }
                _ => {}
            }
        }
        let returned = self.returned;
        self.let_go(out);
        match c {
            '\x1b' => self.held.push(c),
            '\r' => self.returned = true,
            '\n' if returned => {}
            '\n' | '\t' => out.push(c),
            c => put(c, out),
        }
    }

    fn let_go(&mut self, out: &mut String) {
        std::mem::take(&mut self.held).chars().for_each(|c| put(c, out));
        if std::mem::take(&mut self.returned) {
            out.push('\n');
        }
    }
}

/// Whether the numbers of a sequence set colours and weights, and do not hide the text.
fn is_colour(numbers: &str) -> bool {
    let mut numbers = numbers.split(';');
    while let Some(number) = numbers.next() {
        let (code, parts) = number.split_once(':').map_or((number, false), |(code, _)| (code, true));
        match code.parse::<u32>().unwrap_or(0) {
            8 => return false,
            // A colour by its number or by its three shares.
            38 | 48 | 58 if !parts => match numbers.next() {
                Some("5") => drop(numbers.next()),
                Some("2") => drop(numbers.nth(2)),
                _ => return false,
            },
            _ => {}
        }
    }
    true
}
