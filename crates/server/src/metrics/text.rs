//! Metrics as text, in the two formats that Prometheus reads. Each family is declared once, in a table the documentation follows.

use super::Seen;
use std::fmt::{Display, Write};
use windlass_engine::tally::Observed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One family of series.
pub struct Family {
    /// Without the ending that its samples may have.
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub write: fn(&Seen<'_>, &mut Samples<'_>),
}

impl Family {
    /// As people look for it.
    pub fn shown(&self) -> String {
        let ending = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{ending}", self.name)
    }
}

pub type Labels<'a> = &'a [(&'static str, &'a str)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Version 0.0.4: a counter's family has the name of its samples.
    Prometheus,
    /// A counter's family has the name without `_total`, and the text says where it ends.
    OpenMetrics,
}

/// Values come from tables of ours and need no escaping.
pub struct Text {
    text: String,
    format: Format,
}

// Writing to a String does not fail.
impl Text {
    pub fn new(format: Format) -> Self {
        Self { text: String::new(), format }
    }

    pub fn family(&mut self, family: &Family) -> Samples<'_> {
        let Family { name, kind, help, .. } = family;
        let declared = match self.format {
            Format::Prometheus => family.shown(),
            Format::OpenMetrics => (*name).to_owned(),
        };
        let _ = writeln!(self.text, "# TYPE {declared} {}\n# HELP {declared} {help}.", kind.name());
        Samples { text: &mut self.text, name, kind: *kind }
    }

    pub fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

pub struct Samples<'a> {
    text: &'a mut String,
    name: &'static str,
    kind: Kind,
}

impl Samples<'_> {
    pub fn put(&mut self, labels: Labels, value: impl Display) {
        let ending = if self.kind == Kind::Counter { "_total" } else { "" };
        self.sample(ending, labels, None, value);
    }

    pub fn histogram(&mut self, labels: Labels, observed: &Observed) {
        for (bound, count) in &observed.at_most {
            self.sample("_bucket", labels, Some(&format!("{bound:?}")), count);
        }
        self.sample("_bucket", labels, Some("+Inf"), observed.count);
        self.sample("_sum", labels, None, observed.seconds);
        self.sample("_count", labels, None, observed.count);
    }

    fn sample(&mut self, ending: &str, labels: Labels, bound: Option<&str>, value: impl Display) {
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let _ = write!(self.text, "{}{ending}", self.name);
        let mut sign = '{';
        for (name, value) in all {
            let _ = write!(self.text, "{sign}{name}=\"{value}\"");
            sign = ',';
        }
        let _ = writeln!(self.text, "{} {value}", if sign == ',' { "}" } else { "" });
    }
}
