use windlass_cli::dialects::silo::{
    csv::read,
    row::{Faults, Rows},
};

fn told(text: &str) -> (Rows, Vec<String>) {
    let (mut rows, mut faults) = (Rows::default(), Faults::default());
    read(&"f.csv".into(), text, &mut rows, &mut faults);
    (rows, faults.0.iter().map(ToString::to_string).collect())
}

#[test]
fn a_mark_of_the_byte_order_is_no_part_of_the_first_column() {
    let (rows, faults) = told("\u{feff}part_number,description\nA,one\n");
    assert_eq!((rows.items.len(), faults), (1, Vec::new()));
    assert_eq!(told("\u{feff}part_number,\"de\"scription\nA,one\n").1.len(), 1);
}

#[test]
fn quotes_line_breaks_and_empty_fields() {
    let (rows, faults) =
        told("part_number,description,projects,properties.mass\r\nA,\"one, \"\"two\"\"\nthree\",P1;P2,\r\n\r\nB,,,2\n");
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(rows.items[0].description.as_deref(), Some("one, \"two\"\nthree"));
    assert_eq!(rows.items[0].projects.as_deref(), Some(&["P1".to_owned(), "P2".into()][..]));
    assert_eq!((rows.items[1].at.line, rows.items[1].description.is_none()), (5, true));
    assert_eq!(rows.items[1].properties.as_ref().unwrap()["mass"], "2");
}

#[test]
fn mistakes_are_told_with_their_places() {
    for (text, expected) in [
        ("", "f.csv:1:1: the file is empty; its first line names the columns"),
        ("a,b\n1,2\n", "f.csv:1:1: these are neither items"),
        ("part_number,colour\nA,red\n", "f.csv:1:13: colour: unknown; a row of this kind has part_number"),
        ("part_number,schema,schema\n", "f.csv:1:13: schema: the column is there twice"),
        ("part_number,schema\nA\n", "f.csv:2:1: 1 fields, but 2 columns are named"),
        ("part_number,schema\nA,\"x\n", "f.csv:2:3: a quote is wrong"),
        ("part_number,schema\nA,\"x\"y\n", "f.csv:2:3: a quote is wrong"),
        ("part_number,schema\nA,x\"y\n", "f.csv:2:3: a quote is wrong"),
        ("part_number,item_type\nA,Part\n", "f.csv:2:3: item_type: \"Part\" is no item type"),
        ("item_type,part_number\npart,\n", "f.csv:2:1: part_number: is missing"),
        ("parent_part_number,child_part_number,quantity\nA,B,many\n", "f.csv:2:5: quantity: must be a number"),
        ("parent_part_number,child_part_number,quantity\nA,B,0\n", "f.csv:2:5: quantity: must be more than 0"),
        ("parent_part_number,child_part_number,rel_type\nA,B,x\n", "f.csv:2:5: rel_type: \"x\" is none of"),
        ("part_number,revision_number\nA,1.5\n", "f.csv:2:3: revision_number: must be a whole number"),
        ("part_number,properties\nA,{\n", "f.csv:2:3: properties: must be a JSON object"),
        ("code\nlow\n", "f.csv:2:1: code: \"low\" is no project code"),
    ] {
        let (rows, faults) = told(text);
        assert!(faults.first().is_some_and(|told| told.starts_with(expected)), "{text:?}: {faults:?}");
        assert_eq!(rows.items.iter().filter(|item| item.part == "A" && item.item_type.is_some()).count(), 0);
    }
}
