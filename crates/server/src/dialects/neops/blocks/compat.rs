//! Whether a block may be registered beside what is registered already. Whoever calls a block by its major must be able to call
//! any later one of it the same way.

use super::Body;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_plan::neops::reference::Version;

/// A version that is registered and not deleted.
pub struct There<'a> {
    pub version: Version,
    pub body: &'a Body,
}

/// What keeps a block from being registered under a version.
pub fn conflict(version: Version, body: &Body, there: &[There<'_>]) -> Option<String> {
    let same = there.iter().find(|other| other.version == version);
    if same.is_some_and(|same| same.body.calls_alike(body)) {
        return None;
    }
    let newest = |fits: &dyn Fn(Version) -> bool| {
        there.iter().filter(|other| fits(other.version)).max_by_key(|other| other.version)
    };
    let patch = newest(&|other| (other.major, other.minor) == (version.major, version.minor));
    let minor = newest(&|other| other.major == version.major);
    [same, patch, minor].into_iter().flatten().find_map(|other| {
        fault(body, other.body).map(|fault| format!("{fault}, unlike version {} that is registered", other.version))
    })
}

fn fault(new: &Body, old: &Body) -> Option<String> {
    let stricter =
        required(&new.parameter_json_schema).difference(&required(&old.parameter_json_schema)).next().cloned();
    if let Some(name) = stricter {
        return Some(format!("parameterJsonSchema.required: {name:?} is required"));
    }
    let lost = fields(&old.result_data_json_schema).difference(&fields(&new.result_data_json_schema)).next().cloned();
    if let Some(name) = lost {
        return Some(format!("resultDataJsonSchema.properties: {name:?} is missing"));
    }
    if new.run_on != old.run_on {
        return Some(format!("runOn: is {:?}", new.run_on));
    }
    (new.fb_type != old.fb_type).then(|| format!("fbType: is {:?}", new.fb_type))
}

fn required(schema: &Value) -> BTreeSet<String> {
    schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn fields(schema: &Value) -> BTreeSet<String> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}
