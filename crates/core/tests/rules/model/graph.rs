use windlass_core::graph::cycle;

#[test]
fn a_cycle_is_told_along_its_edges() {
    type Case<'a> = (&'a [&'a [usize]], Option<&'a [usize]>);
    let table: [Case; 5] = [
        (&[], None),
        (&[&[], &[0], &[0], &[1, 2]], None),
        (&[&[0]], Some(&[0, 0])),
        (&[&[1], &[0]], Some(&[0, 1, 0])),
        (&[&[], &[0, 3], &[1], &[2], &[3]], Some(&[1, 2, 3, 1])),
    ];
    for (parents, expected) in table {
        let parents: Vec<Vec<usize>> = parents.iter().map(|needs| needs.to_vec()).collect();
        assert_eq!(cycle(&parents).as_deref(), expected, "{parents:?}");
    }
}
