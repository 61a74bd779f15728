use serde_json::{Value, json};
use windlass_plan::{
    Meter,
    neops::{
        acquire::{Acquire, By},
        course::Step,
        reference::{EntityType, Reference},
        step::{Begun, World, begin, early},
        template,
        updates::Update,
    },
};

fn step(fields: Value) -> Step {
    let texts = |name: &str| {
        let list = fields.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let map = |name: &str| fields.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    Step {
        label: "s".into(),
        block: Reference::parse("p/b:1").unwrap(),
        conditions: texts("if"),
        asserts: texts("assert"),
        acquire: Vec::new(),
        parameters: map("with"),
        raw: map("raw"),
        run_on: None,
        parallel: false,
    }
}

fn world() -> World {
    let context = json!({"devices": [{"id": 7, "hostname": "b"}, {"id": 5, "hostname": "a", "up": true}],
        "interfaces": [{"id": 1, "device": {"id": 5}}], "deviceGroups": []});
    let mut world = World::new("wf", &json!({"who": "ann", "n": 2}), &context);
    world.gave("first", EntityType::Global, &[(None, json!({"success": true, "data": {"x": 1}}))]);
    let each = [(Some(5), json!({"data": {"v": "five"}})), (Some(7), json!({"data": {"v": "seven"}}))];
    world.gave("facts", EntityType::Device, &each);
    world
}

#[test]
fn names_lead_to_parameters_context_and_results_in_every_spelling() {
    let table = [
        ("{{ parameters.who }}", json!("ann")),
        ("{{ first.result.data.x }}", json!(1)),
        ("{{ steps.first.result.success }}", json!(true)),
        ("{{ wf.parameters.n }}", json!(2)),
        ("{{ wf.steps.facts.result.data.v }}", json!("five")),
        ("{{ facts.result.data.v }}", json!("five")),
        ("{{ facts.results.\"7\".data.v }}", json!("seven")),
        ("{{ context.device.hostname }}", json!("a")),
        ("{{ context.devices[].hostname }}", json!(["b", "a"])),
        ("{{ context.interface }}", Value::Null),
        ("{{ length(context.device_groups) }}", json!(0)),
        ("{{ later.result }}", Value::Null),
    ];
    for (text, expected) in table {
        let made = template::fill(&json!(text), &world().scope(EntityType::Device, Some(5)), &Meter::default());
        assert_eq!(made, Ok(expected), "{text}");
    }
}

#[test]
fn a_step_is_one_piece_of_work_for_each_entity_that_its_condition_holds_for() {
    let work = |entity: Option<u64>, parameters: Value| (entity, parameters);
    let on_device = EntityType::Device;
    let table = [
        (
            json!({"with": {"a": "{{ parameters.n }}"}, "raw": {"a": "{{ jinja }}"}}),
            EntityType::Global,
            Begun::Work(vec![work(None, json!({"a": "{{ jinja }}"}))]),
        ),
        (
            json!({"with": {"h": "{{ context.device.hostname }}"}}),
            on_device,
            Begun::Work(vec![work(Some(5), json!({"h": "a"})), work(Some(7), json!({"h": "b"}))]),
        ),
        (json!({"if": ["context.device.up"]}), on_device, Begun::Work(vec![work(Some(5), json!({}))])),
        (json!({"if": ["parameters.n"]}), EntityType::Global, Begun::Skip("its condition does not hold")),
        (json!({}), EntityType::Group, Begun::Skip("there is nothing for it to run on")),
        (
            json!({"assert": ["context.device.up"]}),
            on_device,
            Begun::Fail("assertion_failed", "step s for 7: \"context.device.up\" does not hold".into()),
        ),
        (
            json!({"if": ["context.device.up"], "assert": ["context.device.up"]}),
            on_device,
            Begun::Work(vec![work(Some(5), json!({}))]),
        ),
        (
            json!({"with": {"t": "x{{ parameters.none }}"}}),
            EntityType::Global,
            Begun::Fail("interpolation_failed", "step s: t: \"parameters.none\" is null inside a text".into()),
        ),
    ];
    for (fields, on, expected) in table {
        assert_eq!(begin(&step(fields.clone()), on, &[], &world(), None), expected, "{fields}");
    }
}

#[test]
fn one_entity_alone_sees_what_was_changed_for_it() {
    let with = json!({"with": {"h": "{{ context.device.hostname }}", "all": "{{ context.devices[].hostname }}"}});
    let mut changed = world();
    let changes = json!({"updates": [
        {"operation": "patch", "entity": "device", "id": 5, "path": "hostname", "value": "new"},
        {"operation": "create", "entity": "device", "id": 20000000, "data": {"hostname": "made"}},
        {"operation": "delete", "entity": "interface", "id": 1}]});
    changed.change(&Update::read_all(&changes, "").unwrap());
    let expected = vec![(Some(5), json!({"h": "new", "all": ["new", "b", "made"]}))];
    assert_eq!(begin(&step(with), EntityType::Device, &[], &changed, Some(5)), Begun::Work(expected));
    assert_eq!(changed.entities(EntityType::Interface), Vec::<u64>::new());
    assert_eq!(world().entities(EntityType::Interface), [1], "the one it was copied from is as it was");
    let nothing = Begun::Skip("there is nothing for it to run on");
    assert_eq!(begin(&step(json!({})), EntityType::Device, &[], &changed, Some(6)), nothing);
}

#[test]
fn clauses_about_the_context_leave_some_out() {
    let clause = |filter: &str| Acquire {
        entity: EntityType::Device,
        not_empty: false,
        by: By::Context { filter: Some(filter.into()) },
    };
    for (filter, expected) in
        [("up", vec![5]), ("hostname == '{{ parameters.none !! 'b' }}'", vec![7]), ("broken(", vec![])]
    {
        assert_eq!(
            world().left_by(&[clause(filter)], EntityType::Device, None, &Meter::default()),
            Ok(expected),
            "{filter}"
        );
    }
}

#[test]
fn what_follows_from_the_parameters_is_known_early() {
    let fields = json!({"with": {"a": "{{ parameters.who }}!", "b": "{{ context.devices }}", "c": "{{ first.result }}",
        "d": 3}, "raw": {"c": 1}});
    let (made, later) = early(&step(fields), "wf", &json!({"who": "ann"}), &Meter::default()).unwrap();
    assert_eq!(Value::Object(made), json!({"a": "ann!", "c": 1, "d": 3}));
    assert_eq!(later.into_iter().collect::<Vec<_>>(), ["b"]);
    assert!(
        early(&step(json!({"with": {"a": "x{{ parameters.none }}"}})), "wf", &json!({}), &Meter::default()).is_err()
    );
}
