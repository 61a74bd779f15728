use crate::seeds;
use std::collections::BTreeMap;
use windlass_core::Refusal;
use windlass_product::rules::bom::{Bom, Relation, Row, Source, merge};

/// Spreads a seed over all bits (splitmix64).
fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn row(child: &str, quantity: f64, source: Source) -> Row {
    Row { child: child.into(), relation: Relation::Component, quantity, unit: None, designators: vec![], source }
}

fn bom(rows: &[(&str, &str, f64)]) -> Bom {
    let mut by_parent: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for (parent, child, quantity) in rows {
        by_parent.entry(parent).or_default().push(row(child, *quantity, Source::Manual));
    }
    let mut bom = Bom::default();
    by_parent.into_iter().for_each(|(parent, rows)| bom.put(parent, rows));
    bom
}

#[test]
fn quantities_multiply_down_and_add_up_over_ways() {
    let bom = bom(&[("car", "axle", 2.0), ("axle", "wheel", 2.0), ("car", "wheel", 1.0), ("wheel", "bolt", 5.0)]);
    assert_eq!(bom.flat("car").unwrap(), [("bolt".to_owned(), 25.0)]);
    let inside = bom.inside("car").unwrap();
    let told: Vec<_> = inside.iter().map(|i| (i.part_number.as_str(), i.depth, i.quantity)).collect();
    assert_eq!(told, [("car", 0, 1.0), ("axle", 1, 2.0), ("wheel", 1, 5.0), ("bolt", 2, 25.0)]);
    let expanded = bom.expanded("car", 10).unwrap();
    let told: Vec<_> = expanded.iter().map(|l| (l.parent, l.row.child.as_str(), l.level)).collect();
    let all =
        [("car", "axle", 1), ("axle", "wheel", 2), ("wheel", "bolt", 3), ("car", "wheel", 1), ("wheel", "bolt", 2)];
    assert_eq!(told, all);
    assert_eq!(bom.expanded("car", 1).unwrap().len(), 2);
    assert_eq!(bom.flat("bolt").unwrap(), [], "a part contains nothing, itself neither");
}

#[test]
fn only_components_count_as_inside() {
    let mut bom = bom(&[("a", "b", 2.0)]);
    let alternate = Row { relation: Relation::Alternate, ..row("c", 9.0, Source::Manual) };
    bom.put("a", vec![row("b", 2.0, Source::Manual), alternate]);
    assert_eq!(bom.flat("a").unwrap(), [("b".to_owned(), 2.0)]);
    assert_eq!(bom.expanded("a", 1).unwrap().len(), 2);
}

#[test]
fn a_row_that_would_close_a_cycle_names_it() {
    let bom = bom(&[("a", "b", 1.0), ("b", "c", 1.0), ("b", "d", 1.0)]);
    for (parent, child, path) in [
        ("a", "a", Some("a a")),
        ("c", "a", Some("c a b c")),
        ("b", "a", Some("b a b")),
        ("a", "c", None),
        ("c", "d", None),
    ] {
        let told = bom.check_row(parent, child).err().map(|refusal| match refusal {
            Refusal::Cycle { path } => path.join(" "),
            other => panic!("{other}"),
        });
        assert_eq!(told.as_deref(), path, "{parent} -> {child}");
    }
    let round = {
        let mut round = bom.clone();
        round.put("c", vec![row("a", 1.0, Source::Manual)]);
        round
    };
    assert!(matches!(round.flat("a"), Err(Refusal::Cycle { .. })), "damage is told, not walked for ever");
}

#[test]
fn a_merge_touches_only_what_came_from_an_assembly() {
    let rows = [
        row("F01-001", 8.0, Source::Assembly),
        row("PRT-100", 1.0, Source::Assembly),
        row("PRT-400", 2.0, Source::Assembly),
        row("MAN-1", 3.0, Source::Manual),
        row("MAN-2", 3.0, Source::Manual),
    ];
    let entries = [("F01-001", 12.0), ("PRT-100", 1.0), ("PRT-300", 1.0), ("MAN-1", 99.0)];
    let entries = entries.map(|(child, quantity)| (child.to_owned(), quantity)).into();
    let merge = merge(&rows, &entries);
    assert_eq!(merge.added, [("PRT-300".to_owned(), 1.0)]);
    assert_eq!(merge.removed, [("PRT-400".to_owned(), 2.0)]);
    assert_eq!(merge.changed, [("F01-001".to_owned(), 8.0, 12.0)]);
    assert_eq!(merge.unchanged, [("MAN-1".to_owned(), 3.0), ("PRT-100".to_owned(), 1.0)]);
    assert_eq!(merge.summary(), "BOM updated: 1 added, 1 quantity changed, 1 unreferenced");
    let written = merge.rows(&rows);
    assert_eq!(written, [row("PRT-300", 1.0, Source::Assembly), row("F01-001", 12.0, Source::Assembly)]);
}

/// Every path, one by one.
fn naive(bom: &Bom, part: &str, quantity: f64, depth: u32, found: &mut BTreeMap<String, (u32, f64)>) {
    let entry = found.entry(part.to_owned()).or_insert((depth, 0.0));
    *entry = (entry.0.min(depth), entry.1 + quantity);
    for row in bom.rows(part) {
        naive(bom, &row.child, quantity * row.quantity, depth + 1, found);
    }
}

#[test]
fn what_is_inside_agrees_with_counting_every_way() {
    for seed in seeds::of(0..200) {
        let count = 2 + mix(seed) % 9;
        let mut rows = Vec::new();
        let names: Vec<String> = (0..count).map(|n| format!("p{n}")).collect();
        for parent in 0..count {
            for child in parent + 1..count {
                let dice = mix(seed * 1_000 + parent * 20 + child);
                if dice.is_multiple_of(3) {
                    rows.push((&*names[parent as usize], &*names[child as usize], (dice % 4 + 1) as f64));
                }
            }
        }
        let bom = bom(&rows);
        let mut expected = BTreeMap::new();
        naive(&bom, "p0", 1.0, 0, &mut expected);
        let inside = bom.inside("p0").unwrap();
        let told: BTreeMap<_, _> = inside.into_iter().map(|i| (i.part_number, (i.depth, i.quantity))).collect();
        assert_eq!(told, expected, "seed {seed}");
        for (parent, child, _) in &rows {
            assert!(bom.check_row(child, parent).is_err(), "seed {seed}: {child} -> {parent}");
            assert!(bom.check_row(parent, child).is_ok(), "seed {seed}");
        }
    }
}
