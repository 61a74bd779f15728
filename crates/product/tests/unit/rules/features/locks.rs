use std::sync::Arc;
use windlass_product::rules::features::locks::{Context, Editor, Interference, Level, interference};

#[test]
fn the_same_object_is_refused_and_a_shared_cone_is_told() {
    let editor = |user: &str, at: &str| Editor { user: user.into(), workstation: at.into() };
    let context = |level, object: &str, cone: &[&str]| Context {
        level,
        object: object.into(),
        cone: cone.iter().map(|key| Arc::from(*key)).collect(),
    };
    let (ann, bob) = (editor("ann", "ws-1"), editor("bob", "ws-2"));
    let first = context(Level::Sketch, "Sketch001", &["Fillet005", "Pad003", "Sketch001"]);
    let open = [(&ann, &first)];
    let third = context(Level::Sketch, "Sketch003", &["Pad003", "Pocket002", "Sketch003"]);
    let table = [
        (&bob, third.clone(), Interference::Soft(vec![(0, vec!["Pad003".into()])])),
        (&ann, third, Interference::None),
        (&bob, first.clone(), Interference::Hard(0)),
        (&ann, first.clone(), Interference::Own(0)),
        (&editor("ann", "ws-9"), first.clone(), Interference::Hard(0)),
        (&bob, context(Level::Assembly, "Sketch001", &[]), Interference::None),
    ];
    for (who, wanted, expected) in table {
        assert_eq!(interference(&open, who, &wanted), expected, "{who:?} {wanted:?}");
    }
}
