//! What files may take of their disk, and how much namespaces may store.

use super::value;
use std::collections::BTreeMap;
use windlass_core::Namespace;

/// Bytes; 0 is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    pub per_job: u64,
    pub per_namespace: u64,
    /// What files leave free on the disk they are on.
    pub reserve: u64,
}

impl Default for Files {
    fn default() -> Self {
        Self { per_job: 8 << 30, per_namespace: 64 << 30, reserve: 1 << 30 }
    }
}

/// How many bytes namespaces may store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredBytes {
    /// None: it depends on the store. 0: no limit.
    pub each: Option<u64>,
    pub of: BTreeMap<Namespace, u64>,
}

impl StoredBytes {
    pub fn read(each: &str, of: &str) -> Result<Self, String> {
        let size = |name: &str, text: &str| value::bytes(text).map_err(|why| format!("{name}: {why}"));
        let each = match each {
            "auto" => None,
            text => Some(size("stored_bytes_per_namespace_max", text)?),
        };
        let name = "stored_bytes_of_namespaces";
        let one = |text: String| {
            let written = || format!("{name}: {text:?} is not understood; write NAMESPACE=SIZE, e.g. film=100GiB");
            let (namespace, max) = text.split_once('=').ok_or_else(written)?;
            let namespace = Namespace::new(namespace).map_err(|why| format!("{name}: {why}"))?;
            Ok((namespace, size(name, max)?))
        };
        let of = value::list(of).into_iter().map(one).collect::<Result<_, String>>()?;
        Ok(Self { each, of })
    }
}
