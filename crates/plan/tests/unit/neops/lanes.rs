use windlass_plan::neops::{
    lanes::{Stretch, stretches},
    reference::EntityType,
};

/// `D` is a step on devices that goes in parallel, `d` one that does not; `i` interfaces, `g` global.
fn shown(text: &str) -> String {
    let step = |letter: char| {
        let on = match letter.to_ascii_lowercase() {
            'd' => EntityType::Device,
            'i' => EntityType::Interface,
            _ => EntityType::Global,
        };
        (letter.is_ascii_uppercase(), on)
    };
    let steps: Vec<_> = text.chars().map(step).collect();
    let stretch = |Stretch { steps, lanes }: Stretch| {
        if lanes { format!("[{}]", &text[steps]) } else { text[steps].to_owned() }
    };
    stretches(&steps).into_iter().map(stretch).collect::<Vec<_>>().join(" ")
}

#[test]
fn global_steps_and_those_on_other_entities_join_the_lanes() {
    let table = [
        ("", ""),
        ("dd", "d d"),
        ("DD", "[DD]"),
        ("DDG", "[DD] G"),
        ("DDGDDD", "[DD] G [DDD]"),
        ("DDII", "[DD] [II]"),
        ("DID", "D I D"),
        ("DDdDD", "[DD] d [DD]"),
        ("GG", "G G"),
    ];
    for (steps, expected) in table {
        assert_eq!(shown(steps), expected, "{steps}");
    }
}
