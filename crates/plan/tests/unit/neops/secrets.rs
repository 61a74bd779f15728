use serde_json::json;
use windlass_plan::neops::secrets::{MASK, has_mask, keep, mask, strip, unmask};

#[test]
fn passwords_in_updates_are_masked_wherever_they_are_and_put_back() {
    let updates = json!({"updates": [
        {"operation": "patch", "path": "password", "value": "a"},
        {"operation": "patch", "path": "_password", "value": ["b"]},
        {"operation": "patch", "path": "hostname", "value": "password"},
        {"operation": "patch", "path": "facts", "value": {"x/y~z": [{"password": "c"}], "password": null}},
        {"operation": "create", "data": {"password": "d", "hostname": "h"}},
        {"operation": "delete"},
        7,
    ]});
    let mut shown = updates.clone();
    let masked = mask(&mut shown);
    assert_eq!(
        masked.keys().collect::<Vec<_>>(),
        ["/0/value", "/1/value", "/3/value/x~1y~0z/0/password", "/4/data/password"]
    );
    assert_eq!(shown["updates"][0]["value"], MASK);
    assert_eq!(shown["updates"][2]["value"], "password", "a value of that name is none");
    assert_eq!(shown["updates"][4]["data"], json!({"password": MASK, "hostname": "h"}));
    let list = shown["updates"].as_array().unwrap().clone();
    assert!(has_mask(&list));
    assert_eq!(json!(unmask(list, masked)), updates["updates"]);
    for odd in [json!(null), json!({"updates": 7}), json!([])] {
        assert!(mask(&mut odd.clone()).is_empty(), "{odd}");
    }
}

#[test]
fn passwords_are_taken_out_of_what_is_shown_and_stay_in_what_is_replaced() {
    let before = json!({"id": 1, "password": "a", "controller": {"id": 2, "password": "b"},
        "groups": [{"id": 3, "password": "c"}, {"id": 4}]});
    let mut shown = before.clone();
    strip(&mut shown);
    assert_eq!(shown, json!({"id": 1, "controller": {"id": 2}, "groups": [{"id": 3}, {"id": 4}]}));
    keep(&before, &mut shown);
    assert_eq!(shown, before);
    let mut removed = json!({"id": 1, "password": null, "groups": [{"id": 4}, {"id": 3}]});
    keep(&before, &mut removed);
    assert_eq!(removed, json!({"id": 1, "password": null, "groups": [{"id": 4}, {"id": 3, "password": "c"}]}));
}
