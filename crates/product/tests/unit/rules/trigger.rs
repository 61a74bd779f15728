use uuid::Uuid;
use windlass_core::Timestamp;
use windlass_product::rules::{
    bom::{Bom, Relation, Row, Source},
    item::Item,
    trigger::{Covered, Scope, fits, jobs_for},
};

fn item(part: &str, kind: &str, schema: &str, projects: &[&str]) -> Item {
    Item {
        id: Uuid::from_u128(part.len() as u128),
        part_number: part.into(),
        item_type: kind.into(),
        schema: schema.into(),
        category: None,
        description: String::new(),
        properties: Default::default(),
        projects: projects.iter().map(|code| (*code).into()).collect(),
        current_revision: 3,
        created_at: Timestamp(0),
        created_by: "a".into(),
        updated_at: Timestamp(0),
        updated_by: "a".into(),
    }
}

#[test]
fn a_filter_is_exact_and_every_key_of_it_counts() {
    let part = item("P", "part", "Default", &[]);
    for (filter, fit) in [
        (&[][..], true),
        (&[("item_type", "part")], true),
        (&[("item_type", "Part")], false),
        (&[("item_type", "assembly")], false),
        (&[("schema", "Default")], true),
        (&[("schema", "default")], false),
        (&[("item_type", "part"), ("schema", "Default")], true),
        (&[("item_type", "part"), ("schema", "other")], false),
        (&[("colour", "red")], false),
    ] {
        let filter = filter.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        assert_eq!(fits(&filter, &part), fit, "{filter:?}");
    }
}

#[test]
fn a_project_scope_makes_a_job_for_each_project_and_none_without() {
    let (none, two) = (item("A", "part", "s", &[]), item("B", "part", "s", &["P1", "P2"]));
    let named = |codes: &[&str]| codes.iter().map(|code| Some((*code).to_owned())).collect::<Vec<_>>();
    for (scope, of_none, of_two) in [
        (Scope::Item, vec![None], vec![None]),
        (Scope::Assembly, vec![None], vec![None]),
        (Scope::Project, named(&[]), named(&["P1", "P2"])),
    ] {
        assert_eq!((jobs_for(scope, &none), jobs_for(scope, &two)), (of_none, of_two), "{scope:?}");
    }
}

fn row(child: &str, quantity: f64, relation: Relation) -> Row {
    Row { child: child.into(), relation, quantity, unit: None, designators: vec![], source: Source::Manual }
}

#[test]
fn an_assembly_covers_its_components_by_distance_with_quantities_over_all_ways() {
    let root = item("ROOT", "assembly", "s", &[]);
    let mut bom = Bom::default();
    let component = |child, quantity| row(child, quantity, Relation::Component);
    bom.put("ROOT", vec![component("B", 2.0), component("A", 1.0), row("ALT", 9.0, Relation::Alternate)]);
    bom.put("A", vec![component("B", 3.0), component("GONE", 1.0)]);
    let known = ["A", "B", "ALT"].map(|part| (part.to_owned(), item(part, "part", "s", &[]))).into_iter().collect();
    let told = |all: Vec<Covered>| -> Vec<(String, u32, u32, f64)> {
        all.into_iter().map(|one| (one.part_number, one.revision, one.depth, one.quantity)).collect()
    };
    let covered = told(Covered::assembly(&root, 2, &bom, &known).unwrap());
    let expected = [("ROOT", 2, 0, 1.0), ("A", 3, 1, 1.0), ("B", 3, 1, 5.0)];
    assert_eq!(covered, expected.map(|(part, revision, depth, many)| (part.to_owned(), revision, depth, many)));
    assert_eq!(told(Covered::item(&root, 2)), [("ROOT".to_owned(), 2, 0, 1.0)]);
    let members = [item("X", "part", "s", &["P"]), item("Y", "part", "s", &["P"])];
    assert_eq!(told(Covered::project(&members)), [("X".to_owned(), 3, 0, 1.0), ("Y".to_owned(), 3, 0, 1.0)]);
    assert_eq!(Covered::project(&[]), []);
}
