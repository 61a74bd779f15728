use windlass_cli::dialects::silo::{
    json::read,
    row::{Faults, Rows},
};

fn told(text: &str) -> (Rows, Vec<String>) {
    let (mut rows, mut faults) = (Rows::default(), Faults::default());
    read(&"f.json".into(), text, &mut rows, &mut faults);
    (rows, faults.0.iter().map(ToString::to_string).collect())
}

#[test]
fn lists_and_objects_of_lists_are_read() {
    let (rows, faults) = told(
        "{\"items\": [{\"part_number\": \"A\", \"properties\": {\"m\": 1}, \"category\": null}],\n \"bom\": [{\"parent_part_number\": \"A\", \"child_part_number\": \"B\", \"quantity\": 2.5, \"reference_designators\": [\"R1\"]}]}",
    );
    assert_eq!((faults, rows.items.len(), rows.bom[0].quantity), (vec![], 1, Some(2.5)));
    let (rows, faults) =
        told("[{\"part_number\": \"A\", \"id\": 7}, {\"part_number\": \"A\", \"revision_number\": 2}]");
    assert_eq!((faults, rows.items.len(), rows.revisions[0].number), (vec![], 1, 2));
}

#[test]
fn mistakes_are_told_with_their_places() {
    for (text, expected) in [
        ("{", "f.json:1:1: EOF while parsing"),
        ("[\n  {\"part_number\": \"A\",\n   \"colour\": 1}]", "f.json:3:14: colour: unknown"),
        ("[{\"part_number\": \"A\"},\n {\"part_number\": 7}]", "f.json:2:18: part_number: must be a text, not 7"),
        ("[{\"a\": 1}]", "f.json:1:2: these are neither items"),
        ("[7]", "f.json:1:2: invalid type"),
        ("{\"parts\": []}", "f.json:1:"),
        ("{\"items\": [{}]}", "f.json:1:12: part_number: is missing"),
    ] {
        let (_, faults) = told(text);
        assert!(faults.first().is_some_and(|told| told.starts_with(expected)), "{text:?}: {faults:?}");
    }
}
