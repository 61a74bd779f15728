use windlass_plan::neops::{
    acquire::{Acquire, By, filters},
    reference::EntityType::{self, Device, Interface},
};

fn clause(entity: EntityType, by: By) -> Acquire {
    Acquire { entity, not_empty: false, by }
}

fn only(entity: EntityType, filter: &str) -> Acquire {
    clause(entity, By::Context { filter: Some(filter.into()) })
}

fn as_in(entity: EntityType, label: &str) -> Acquire {
    clause(entity, By::Reference { label: label.into() })
}

#[test]
fn a_step_that_refers_to_another_is_for_the_same_entities() {
    let clauses = [
        vec![only(Device, "up"), only(Interface, "fast")],
        vec![as_in(Device, "a"), only(Device, "old")],
        vec![as_in(Device, "b")],
        // In a circle: each is for what the other is for.
        vec![as_in(Device, "e"), only(Device, "x")],
        vec![as_in(Device, "d")],
    ];
    let found = filters(&clauses, &["a", "b", "c", "d", "e"]).unwrap();
    let shown = |filters: &Vec<(EntityType, String)>| {
        filters.iter().map(|(on, filter)| format!("{} {filter}", on.as_str())).collect::<Vec<_>>().join(", ")
    };
    let expected =
        ["device up, interface fast", "device up, device old", "device up, device old", "device x", "device x"];
    assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected);
    let why = filters(&[vec![as_in(Device, "z")]], &["a"]).unwrap_err();
    assert!(why.contains("step z"), "{why}");
    let many: Vec<Vec<Acquire>> =
        (0..200).map(|_| (0..100).map(|at| only(Device, &format!("x{at}"))).collect()).collect();
    assert!(filters(&many, &[]).unwrap_err().contains("more than 10000"));
}
