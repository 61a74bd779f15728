use serde_json::json;
use windlass_plan::neops::{
    entity::{camel, check, without_secrets},
    reference::EntityType,
};

#[test]
fn fields_have_the_types_that_workers_read() {
    use EntityType::{Device, Group, Interface};
    let good = [
        (Device, json!({"id": 5})),
        (
            Device,
            json!({"id": 5.0, "hostname": "a", "facts": {}, "connectionState": "OK", "interfaces": [{"id": 1}],
            "platform": {"id": 1, "shortName": "ios"}, "isReadLocked": false, "vendor": null, "own": [1, "x"]}),
        ),
        (Interface, json!({"id": 7, "state": "UP", "ifindex": 3, "device": {"id": 5}, "checks": {}})),
        (Group, json!({"id": 1, "name": "g", "devices": [{"id": 5}], "location": {}})),
    ];
    for (entity, value) in good {
        assert!(check(entity, &value, "").is_ok(), "{value}");
    }
    let bad = [
        (Device, json!([]), "devices[0] must be an object"),
        (Device, json!({}), "devices[0].id must be a whole number"),
        (Device, json!({"id": 0}), "devices[0].id must be a whole number"),
        (Device, json!({"id": "5"}), "devices[0].id must be a whole number"),
        (Device, json!({"id": 5, "hostname": 7}), "devices[0].hostname must be a string"),
        (Device, json!({"id": 5, "connectionState": "ok"}), "devices[0].connectionState must be one of NEW"),
        (Device, json!({"id": 5, "groups": [7]}), "devices[0].groups must be a list of objects with ids"),
        (Interface, json!({"id": 5, "state": "up"}), "devices[0].state must be one of UP"),
        (Group, json!({"id": 5, "permissionFlags": "all"}), "devices[0].permissionFlags must be a list of strings"),
    ];
    for (entity, value, expected) in bad {
        let faults = check(entity, &value, "devices[0]").unwrap_err();
        assert!(faults[0].to_string().starts_with(expected), "{value}: {faults:?}");
    }
}

#[test]
fn names_of_fields_are_spelt_as_in_a_context() {
    for (snake, expected) in
        [("software_release", "softwareRelease"), ("ip", "ip"), ("is_read_locked", "isReadLocked"), ("_a__b", "aB")]
    {
        assert_eq!(camel(snake), expected);
    }
    let shown = without_secrets(&json!({"id": 1, "password": "x", "username": "u"}));
    assert_eq!(shown, json!({"id": 1, "username": "u"}));
}
