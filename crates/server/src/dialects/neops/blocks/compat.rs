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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(required: &[&str], results: &[&str], run_on: &str) -> Body {
        let properties: serde_json::Map<_, _> = results.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        Body {
            run_on: run_on.into(),
            fb_type: "check".into(),
            parameter_json_schema: json!({"required": required}),
            result_data_json_schema: json!({"properties": properties}),
            ..Body::default()
        }
    }

    #[test]
    fn later_versions_ask_for_no_more_and_give_no_less() {
        let (first, second) = (body(&["a", "b"], &["x"], "device"), body(&["a"], &["x", "y"], "device"));
        let there = [
            There { version: Version::new(1, 0, 0), body: &first },
            There { version: Version::new(1, 1, 0), body: &second },
        ];
        let table = [
            ((1, 0, 0), body(&["a", "b"], &["x"], "device"), None),
            ((1, 0, 0), body(&["a", "b", "c"], &["x", "y"], "device"), Some("\"c\" is required")),
            ((1, 0, 1), body(&["a", "b"], &["x", "y"], "device"), Some("unlike version 1.1.0")),
            ((1, 1, 1), body(&["a"], &["x"], "device"), Some("\"y\" is missing")),
            ((1, 2, 0), body(&[], &["x", "y", "z"], "device"), None),
            ((1, 2, 0), body(&[], &["x", "y"], "global"), Some("runOn")),
            ((2, 0, 0), body(&["q"], &[], "global"), None),
        ];
        for ((major, minor, patch), new, expected) in table {
            let found = conflict(Version::new(major, minor, patch), &new, &there);
            assert_eq!(found.is_some(), expected.is_some(), "{major}.{minor}.{patch}: {found:?}");
            let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
            assert!(found.contains(expected), "{found:?} does not say {expected:?}");
        }
    }
}
