use windlass_cli::bench::dialect::workflow_graph::Shape;

#[test]
fn shapes_are_graphs_without_cycles() {
    for shape in [Shape::Roots, Shape::Fan, Shape::Rows] {
        assert!((0..1_000).all(|at| shape.needs(at, 1_000).into_iter().all(|need| need < at)));
    }
    assert_eq!(Shape::Fan.needs(9, 10).len(), 8);
    assert_eq!(Shape::Rows.needs(299, 1_000), [199, 100]);
}
