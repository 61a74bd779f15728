use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_plan::neops::{
    reference::EntityType::{Device, Interface},
    updates::{Change, Update, apply, resolve},
};

fn read(updates: Value) -> Vec<Update> {
    Update::read_all(&json!({"updates": updates}), "dbUpdates").unwrap()
}

#[test]
fn updates_are_read_as_workers_send_them() {
    let all = read(json!([
        {"operation": "patch", "entity": "device", "id": 5, "path": "software_release", "value": "17.3"},
        {"operation": "patch", "entity": "device", "id": 5, "path": "vendor", "value": null},
        {"operation": "create", "entity": "device", "id": 1969352685, "identifierFields": ["hostname"],
            "data": {"id": 1969352685, "hostname": "new1", "created_at": null}, "skipIfIdentifierExists": true},
        {"operation": "delete", "entity": "interface", "id": 11}]));
    assert_eq!(all[0].change, Change::Patch { field: "softwareRelease".into(), value: json!("17.3") });
    let data = json!({"hostname": "new1"}).as_object().unwrap().clone();
    assert_eq!(
        all[2].change,
        Change::Create { data, identifiers: vec!["hostname".into()], unless_there: true },
        "without what nobody set"
    );
    let bad = [
        (json!({"operation": "grow", "entity": "device", "id": 1}), "dbUpdates.updates[0].operation must be"),
        (json!({"operation": "delete", "entity": "device"}), "dbUpdates.updates[0].id must be"),
        (json!({"operation": "delete", "entity": "planet", "id": 1}), "dbUpdates.updates[0].entity must be one of"),
        (
            json!({"operation": "patch", "entity": "device", "id": 1, "path": "id", "value": 2}),
            "dbUpdates.updates[0].path must",
        ),
        (
            json!({"operation": "patch", "entity": "device", "id": 1, "path": "facts", "value": 2}),
            "dbUpdates.updates[0].value must be an object",
        ),
        (
            json!({"operation": "create", "entity": "device", "id": 1, "data": {"hostname": 1}}),
            "dbUpdates.updates[0].data.hostname",
        ),
    ];
    for (update, expected) in bad {
        let faults = Update::read_all(&json!({"updates": [update]}), "dbUpdates").unwrap_err();
        assert!(faults[0].to_string().starts_with(expected), "{update}: {faults:?}");
    }
}

#[test]
fn later_steps_see_what_earlier_ones_changed() {
    let mut context =
        json!({"devices": [{"id": 5, "vendor": "a"}, {"id": 6}], "deviceGroups": [], "interfaces": [{"id": 11}]});
    let updates = read(json!([
        {"operation": "patch", "entity": "device", "id": 5, "path": "facts", "value": {"v": 1}},
        {"operation": "patch", "entity": "device", "id": 7, "path": "facts", "value": {}},
        {"operation": "create", "entity": "device", "id": 12345678, "data": {"hostname": "n"}},
        {"operation": "delete", "entity": "interface", "id": 11}]));
    apply(&mut context, &updates);
    let devices = json!([{"id": 5, "vendor": "a", "facts": {"v": 1}}, {"id": 6}, {"id": 12345678, "hostname": "n"}]);
    assert_eq!(context, json!({"devices": devices, "deviceGroups": [], "interfaces": []}));
}

/// Looked for one by one these would be hundreds of millions of steps, and the test would take minutes.
#[test]
fn many_changes_of_many_entities_are_applied_in_one_pass() {
    const MANY: u64 = 20_000;
    let devices: Vec<Value> = (1..=MANY).map(|id| json!({"id": id})).collect();
    let mut context = json!({"devices": devices, "deviceGroups": [], "interfaces": []});
    let one = |id, change| Update { entity: Device, id, change };
    let patch = |id| one(id, Change::Patch { field: "vendor".into(), value: json!(id) });
    let create = |id: u64| {
        let data = json!({"hostname": format!("n{id}"), "group": {"id": id}}).as_object().unwrap().clone();
        one(id, Change::Create { data, identifiers: vec!["hostname".into()], unless_there: true })
    };
    let mut updates: Vec<Update> = (1..=MANY).rev().map(patch).collect();
    updates.extend((1..=MANY).step_by(2).map(|id| one(id, Change::Delete)));
    updates.extend((MANY + 1..=2 * MANY).map(create));
    updates.push(create(1));
    apply(&mut context, &updates);
    let resolved = resolve(&updates, BTreeMap::new(), &BTreeMap::new(), BTreeMap::from([(Device, 3 * MANY)]));
    let left = context["devices"].as_array().unwrap();
    assert_eq!(left.len() as u64, MANY / 2 + MANY + 1);
    assert_eq!((&left[0], &left[1]["vendor"]), (&json!({"id": 2, "vendor": 2}), &json!(4)), "in their order");
    assert_eq!(left.last().unwrap()["hostname"], "n1", "what was deleted can come again");
    assert_eq!((resolved.put.len() as u64, resolved.deleted.len() as u64), (MANY / 2 + MANY + 1, MANY / 2 - 1));
}

#[test]
fn made_up_ids_are_replaced_everywhere() {
    let updates = read(json!([
        {"operation": "create", "entity": "device", "id": 99000001, "data": {"hostname": "n"}},
        {"operation": "patch", "entity": "device", "id": 99000001, "path": "vendor", "value": "v"},
        {"operation": "create", "entity": "interface", "id": 99000002, "data": {"name": "i", "device": {"id": 99000001}}},
        {"operation": "patch", "entity": "device", "id": 5, "path": "interfaces", "value": [{"id": 99000002}]}]));
    let there = BTreeMap::from([((Device, 5), json!({"id": 5, "hostname": "five"}))]);
    let resolved = resolve(&updates, there, &BTreeMap::new(), BTreeMap::from([(Device, 8), (Interface, 3)]));
    let expected = BTreeMap::from([
        ((Device, 5), json!({"id": 5, "hostname": "five", "interfaces": [{"id": 3}]})),
        ((Device, 8), json!({"id": 8, "hostname": "n", "vendor": "v"})),
        ((Interface, 3), json!({"id": 3, "name": "i", "device": {"id": 8}})),
    ]);
    assert_eq!(resolved.put, expected);
    assert_eq!(resolved.next, BTreeMap::from([(Device, 9), (Interface, 4)]));
}

#[test]
fn what_is_there_already_is_not_created_twice() {
    let create = |id: u64| {
        json!({"operation": "create", "entity": "device", "id": id, "data": {"hostname": "n"},
        "identifierFields": ["hostname"], "skipIfIdentifierExists": true})
    };
    let updates = read(json!([create(99000001), create(99000002),
        {"operation": "patch", "entity": "device", "id": 99000002, "path": "vendor", "value": "v"}]));
    let resolved = resolve(&updates, BTreeMap::new(), &BTreeMap::new(), BTreeMap::from([(Device, 8)]));
    assert_eq!(resolved.put, BTreeMap::from([((Device, 8), json!({"id": 8, "hostname": "n", "vendor": "v"}))]));
    let there = BTreeMap::from([((Device, 4), json!({"id": 4, "hostname": "n", "ip": "x"}))]);
    let known = BTreeMap::from([(0, 4), (1, 4)]);
    let resolved = resolve(&updates, there, &known, BTreeMap::from([(Device, 8)]));
    assert_eq!(
        resolved.put,
        BTreeMap::from([((Device, 4), json!({"id": 4, "hostname": "n", "ip": "x", "vendor": "v"}))])
    );
    let gone = read(json!([{"operation": "patch", "entity": "device", "id": 4, "path": "vendor", "value": "v"},
        {"operation": "delete", "entity": "device", "id": 4}]));
    let resolved = resolve(&gone, BTreeMap::new(), &BTreeMap::new(), BTreeMap::new());
    assert_eq!((resolved.put.len(), resolved.deleted), (0, BTreeSet::from([(Device, 4)])));
}
