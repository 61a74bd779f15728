//! Names with versions: `package/name:1.2.3` is one version, `package/name:1` the newest of a major.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of `package/name:1.2.3`; with what the server puts around it, a record's key still fits.
pub const ID_BYTES_MAX: usize = 250;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Reads `1.2.3`.
    pub fn parse(text: &str) -> Option<Self> {
        let [major, minor, patch] = numbers(text)?;
        Some(Self { major: major?, minor: minor?, patch: patch? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// One to three numbers between dots. None: something else, or a number that is too large.
fn numbers(text: &str) -> Option<[Option<u32>; 3]> {
    let mut found = [None; 3];
    for (at, part) in text.split('.').enumerate() {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *found.get_mut(at)? = Some(part.parse().ok().filter(|_| digits)?);
    }
    Some(found)
}

/// What names a function block or a workflow. A major is always named; it is never resolved to another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    pub package: String,
    pub name: String,
    pub major: u32,
    pub minor: Option<u32>,
    pub patch: Option<u32>,
}

impl Reference {
    pub fn parse(text: &str) -> Option<Self> {
        let (package, rest) = text.split_once('/')?;
        let (name, version) = rest.split_once(':')?;
        let [major, minor, patch] = numbers(version)?;
        let fits = is_name(package) && is_name(name) && text.len() <= ID_BYTES_MAX;
        fits.then_some(Self { package: package.into(), name: name.into(), major: major?, minor, patch })
    }

    pub fn exact(package: &str, name: &str, version: Version) -> Self {
        let Version { major, minor, patch } = version;
        Self { package: package.into(), name: name.into(), major, minor: Some(minor), patch: Some(patch) }
    }

    /// The version it names, if it names one.
    pub fn version(&self) -> Option<Version> {
        Some(Version { major: self.major, minor: self.minor?, patch: self.patch? })
    }

    pub fn fits(&self, version: Version) -> bool {
        let same = |asked: Option<u32>, is| asked.is_none_or(|asked| asked == is);
        self.major == version.major && same(self.minor, version.minor) && same(self.patch, version.patch)
    }

    /// Which of the versions that are there it stands for.
    pub fn newest(&self, there: impl IntoIterator<Item = Version>) -> Option<Version> {
        there.into_iter().filter(|version| self.fits(*version)).max()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.package, self.name, self.major)?;
        self.minor.map_or(Ok(()), |minor| write!(f, ".{minor}"))?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

/// A name or a package: anything without the two marks that separate them.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['/', ':'])
}

/// Labels are names in expressions, so those that expressions know already are taken.
pub fn is_label(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    begins && fits && text.len() <= LABEL_BYTES_MAX && !["parameters", "context", "steps"].contains(&text)
}

pub const LABEL_BYTES_MAX: usize = 100;

/// What a step runs on, once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntityType {
    Global,
    Device,
    Interface,
    Group,
    Client,
}

impl EntityType {
    pub const ALL: [Self; 5] = [Self::Global, Self::Device, Self::Interface, Self::Group, Self::Client];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Device => "device",
            Self::Interface => "interface",
            Self::Group => "group",
            Self::Client => "client",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entity| entity.as_str() == text)
    }
}
