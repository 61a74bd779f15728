//! Names people choose: namespaces, workers, tags, facets; and the lanes that follow from tags.

use crate::model::{limits::Limits, refusal::Refusal};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{fmt, sync::Arc};

/// A partition of everything. Matching, listing and uniqueness never cross it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// Lower-case letters, digits, `_`, `-` and `.`; 1 to 64 characters; starts with a letter or digit.
    pub fn new(name: &str) -> Result<Self, Refusal> {
        let fits = (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b))
            && name.as_bytes()[0].is_ascii_alphanumeric();
        if !fits {
            return Err(Refusal::invalid(
                "namespace",
                format!(
                    "{name:?} is not a namespace: use 1 to 64 of a-z, 0-9, '_', '-', '.', starting with a letter or digit"
                ),
            ));
        }
        Ok(Self(name.into()))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self("default".into())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A worker's name within its namespace. Dialects use whatever their clients send.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    pub fn new(name: &str) -> Result<Self, Refusal> {
        check_name("worker", name, &Limits::default())?;
        Ok(Self(name.into()))
    }
    /// For names that were checked before, such as those read back from a store.
    pub fn trusted(name: &str) -> Self {
        Self(name.into())
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sorted set of capabilities. Required by jobs, offered by workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Arc<str>>")]
pub struct Tags(Arc<[Arc<str>]>);

impl Tags {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|tag| &**tag)
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Memory they take, about.
    pub fn bytes(&self) -> usize {
        self.iter().map(|tag| 32 + tag.len()).sum()
    }
    /// As how many sets it counts where sets are counted: one, unless it is large.
    pub fn weight(&self) -> usize {
        1 + self.bytes() / 640
    }
    pub fn contains(&self, tag: &str) -> bool {
        self.0.binary_search_by(|have| (**have).cmp(tag)).is_ok()
    }
    /// The one matching rule: a job fits a worker when it requires nothing the worker does not offer.
    pub fn subset_of(&self, offered: &Tags) -> bool {
        self.len() <= offered.len() && self.iter().all(|tag| offered.contains(tag))
    }
    pub fn intersection(&self, other: &Tags) -> Tags {
        self.0.iter().filter(|tag| other.contains(tag)).cloned().collect::<Vec<_>>().into()
    }
    pub(crate) fn check(&self, field: &'static str, count_max: usize, limits: &Limits) -> Result<(), Refusal> {
        if self.len() > count_max {
            return Err(Refusal::too_large(field, self.len(), count_max));
        }
        self.iter().try_for_each(|tag| check_name(field, tag, limits))
    }
}

impl From<Vec<Arc<str>>> for Tags {
    fn from(mut tags: Vec<Arc<str>>) -> Self {
        tags.sort();
        tags.dedup();
        Self(tags.into())
    }
}

impl<'a> FromIterator<&'a str> for Tags {
    fn from_iter<I: IntoIterator<Item = &'a str>>(tags: I) -> Self {
        tags.into_iter().map(Arc::from).collect::<Vec<Arc<str>>>().into()
    }
}

/// One distinct (namespace, required tags). Jobs queue per lane, so that a claim never steps over a job it cannot take.
///
/// A cryptographic hash, because tags are chosen by callers: nobody can steer their jobs into a foreign lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lane(pub u128);

impl Lane {
    pub fn of(namespace: &Namespace, required: &Tags) -> Self {
        let mut hash = Sha256::new();
        hash.update(namespace.as_str());
        for tag in required.iter() {
            // Lengths keep ["ab"] and ["a", "b"] apart.
            hash.update((tag.len() as u64).to_be_bytes());
            hash.update(tag);
        }
        let digest = hash.finalize();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Self(u128::from_be_bytes(first))
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lane({:032x})", self.0)
    }
}

/// An indexed name–value pair on a job or record, for listing (room, item, definition, user …).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Facet {
    pub name: Arc<str>,
    pub value: Arc<str>,
}

impl Facet {
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

pub(crate) fn check_facets(facets: &[Facet], limits: &Limits) -> Result<(), Refusal> {
    if facets.len() > limits.facets_max {
        return Err(Refusal::too_large("facets", facets.len(), limits.facets_max));
    }
    for facet in facets {
        check_name("facets", &facet.name, limits)?;
        check_name("facets", &facet.value, limits)?;
    }
    Ok(())
}

/// Names are data: any characters but control characters, not empty, not endless.
pub(crate) fn check_name(field: &'static str, name: &str, limits: &Limits) -> Result<(), Refusal> {
    if name.len() > limits.name_bytes_max {
        return Err(Refusal::too_large(field, name.len(), limits.name_bytes_max));
    }
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Refusal::invalid(field, format!("{name:?} is empty or holds a control character")));
    }
    Ok(())
}
