//! What becomes of a document that is published: what is published never changes, so the version number is the contract.

use super::{
    compare::{Finding, Level, Target, compare, floor, same},
    document::{Document, Work},
    reference::Version,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A version that was published once. Deleted ones keep their number and their document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub version: Version,
    pub deleted: bool,
}

pub struct PublishRequest<'a> {
    pub document: &'a Value,
    pub version: Version,
    /// If the version is taken, the next free one that fits is taken instead.
    pub increment: bool,
    /// The step in the version that its author insists on: patch or minor.
    pub accept: Option<Level>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// With the step that was taken although the changes call for a larger one.
    Published {
        accepted: Option<Level>,
    },
    Unchanged,
    Revived,
    /// The version holds another document.
    Taken,
    /// The version held another document, and was deleted.
    Deleted,
    BelowFloor,
    /// Only a new major would do, and nobody gets one unasked.
    MajorRequiresExplicit,
    AcceptMismatch {
        sent: Level,
        expected: Level,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: PublishOutcome,
    /// The version that is written, or would be.
    pub version: Version,
    /// How it differs from the version that it displaces. None: it displaces none.
    pub bump: Option<Level>,
    pub floor: Option<Level>,
    pub findings: Vec<Finding>,
    /// A free version under which the document can be published as it is.
    pub suggested: Version,
    /// The next free version on an older line, if only a new major would do.
    pub alternative: Option<Version>,
}

/// The versions whose documents [`decide`] looks at.
pub fn wanted(held: &[Held], declared: Version) -> BTreeSet<Version> {
    let line = Line { held, declared };
    let candidates = [Level::Patch, Level::Minor].map(|level| line.next(level));
    let displaced = candidates.into_iter().chain([declared]).filter_map(|version| line.displaced(version));
    let own = held.iter().map(|held| held.version).filter(|version| *version == declared);
    displaced.chain(own).collect()
}

pub fn decide(asked: &PublishRequest<'_>, held: &[Held], documents: &BTreeMap<Version, Value>) -> Verdict {
    let line = Line { held, declared: asked.version };
    Desk { asked, line, documents }.decide()
}

/// All versions of a workflow, seen from the one that is declared.
#[derive(Clone, Copy)]
struct Line<'a> {
    held: &'a [Held],
    declared: Version,
}

impl Line<'_> {
    /// The newest live version of the same major below this one.
    fn displaced(&self, version: Version) -> Option<Version> {
        let below = |held: &&Held| !held.deleted && held.version.major == version.major && held.version < version;
        self.held.iter().filter(below).map(|held| held.version).max()
    }

    /// The next number at a level that was never used; on a line without versions, the declared one.
    fn next(&self, level: Level) -> Version {
        let Version { major, minor, patch } = self.declared;
        let held = self.held.iter().map(|held| held.version);
        let after = |last: Option<u32>, first: u32| last.map_or(first, |last| last.saturating_add(1));
        match level {
            Level::Major => Version::new(after(held.map(|version| version.major).max(), major), 0, 0),
            Level::Minor => {
                let minors = held.filter(|version| version.major == major).map(|version| version.minor);
                Version::new(major, after(minors.max(), minor), 0)
            }
            Level::Patch | Level::Advisory => {
                let same = held.filter(|version| (version.major, version.minor) == (major, minor));
                Version::new(major, minor, after(same.map(|version| version.patch).max(), patch))
            }
        }
    }

    fn is_newest_major(&self) -> bool {
        !self.held.iter().any(|held| !held.deleted && held.version.major > self.declared.major)
    }
}

/// How a version compares with the one that it displaces.
struct Measure {
    bump: Option<Level>,
    floor: Option<Level>,
    findings: Vec<Finding>,
}

impl Measure {
    fn is_below_floor(&self) -> bool {
        self.bump.is_some() && self.floor > self.bump
    }
}

struct Desk<'a> {
    asked: &'a PublishRequest<'a>,
    line: Line<'a>,
    documents: &'a BTreeMap<Version, Value>,
}

impl Desk<'_> {
    fn decide(&self) -> Verdict {
        let declared = self.asked.version;
        let Some(there) = self.line.held.iter().find(|held| held.version == declared) else { return self.free() };
        let published = self.documents.get(&declared).unwrap_or(&Value::Null);
        match (same(published, self.asked.document), there.deleted) {
            (true, false) => self.verdict(PublishOutcome::Unchanged, declared, declared),
            (true, true) => self.verdict(PublishOutcome::Revived, declared, declared),
            (false, _) if self.asked.increment => self.incremented(),
            (false, deleted) => {
                let outcome = if deleted { PublishOutcome::Deleted } else { PublishOutcome::Taken };
                let findings = compare(published, self.asked.document);
                Verdict { findings, ..self.verdict(outcome, declared, self.suggested()) }
            }
        }
    }

    fn free(&self) -> Verdict {
        let declared = self.asked.version;
        let measure = self.measure(declared);
        match (self.asked.accept, measure.bump) {
            (Some(sent), Some(expected)) if sent != expected => {
                self.verdict(PublishOutcome::AcceptMismatch { sent, expected }, declared, self.suggested())
            }
            (None, _) if measure.is_below_floor() => {
                self.verdict(PublishOutcome::BelowFloor, declared, self.suggested())
            }
            (accept, _) => {
                let accepted = accept.filter(|_| measure.is_below_floor());
                self.verdict(PublishOutcome::Published { accepted }, declared, declared)
            }
        }
    }

    fn incremented(&self) -> Verdict {
        let suggested = self.suggested();
        let version = self.asked.accept.map_or(suggested, |level| self.line.next(level));
        if version.major != self.asked.version.major {
            return self.verdict(PublishOutcome::MajorRequiresExplicit, self.line.next(Level::Minor), suggested);
        }
        let accepted = self.asked.accept.filter(|_| self.measure(version).is_below_floor());
        self.verdict(PublishOutcome::Published { accepted }, version, version)
    }

    fn measure(&self, version: Version) -> Measure {
        let Some(displaced) = self.line.displaced(version) else {
            return Measure { bump: None, floor: None, findings: Vec::new() };
        };
        let before = self.documents.get(&displaced).unwrap_or(&Value::Null);
        let findings = compare(before, self.asked.document);
        let bump = if displaced.minor == version.minor { Level::Patch } else { Level::Minor };
        Measure { bump: Some(bump), floor: floor(&findings), findings }
    }

    /// The smallest step that is not below its floor.
    fn suggested(&self) -> Version {
        let fits = |level: &Level| !self.measure(self.line.next(*level)).is_below_floor();
        let level = [Level::Patch, Level::Minor].into_iter().find(fits).unwrap_or(Level::Major);
        self.line.next(level)
    }

    fn verdict(&self, outcome: PublishOutcome, version: Version, suggested: Version) -> Verdict {
        let Measure { bump, floor, findings } = self.measure(version);
        let backport = floor == Some(Level::Major) && !self.line.is_newest_major();
        let alternative = bump.filter(|_| backport).map(|bump| self.line.next(bump));
        Verdict { outcome, version, bump, floor, findings, suggested, alternative }
    }
}

/// The document under another version.
pub fn renumbered(mut document: Value, version: Version) -> Value {
    let fields = [("majorVersion", version.major), ("minorVersion", version.minor), ("patchVersion", version.patch)];
    for (field, number) in fields {
        document[field] = json!(number);
    }
    document
}

/// What a document asks for that is not done.
pub fn advice(document: &Document) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut unheeded = |path: &str, label: Option<&str>, fields: &[&'static str]| {
        for field in fields {
            let message = format!("{field} is kept and shown, but not acted on");
            found.push(advisory("notActedOn", format!("{path}/{field}"), message, label));
        }
    };
    unheeded("", None, &document.common.unheeded);
    document.each(&mut |place, step| unheeded(&pointer(place), Some(&step.label), &step.common.unheeded));
    document.each(&mut |place, step| {
        if let Work::Workflow { reference, .. } = &step.work {
            let message = format!("a run that comes to step {:?} fails safely: it refers to {reference}", step.label);
            found.push(advisory("workflowReferenceFails", pointer(place), message, Some(&step.label)));
        }
    });
    found
}

fn advisory(code: &'static str, path: String, message: String, label: Option<&str>) -> Finding {
    let target = label.map(|label| Target::Step(label.into()));
    Finding { code, path, message, level: Level::Advisory, target }
}

/// `steps[0].steps[1]` as a JSON pointer.
fn pointer(place: &str) -> String {
    format!("/{}", place.replace(['[', '.'], "/").replace(']', ""))
}
