use windlass_plan::neops::undo::{Ran, Verdict, classify};

/// `2c-r`: step 2, claimed, not pure, reversible.
fn ran(text: &str) -> Vec<Ran<String>> {
    let one = |word: &str| Ran {
        job: word.to_owned(),
        step: word[..1].parse().unwrap(),
        claimed: word.contains('c'),
        pure: word.contains('p'),
        reversible: word.contains('r'),
    };
    text.split_whitespace().map(one).collect()
}

#[test]
fn only_what_was_begun_and_is_not_pure_counts() {
    let waves = |waves: &[&[&str]]| {
        let wave = |wave: &&[&str]| wave.iter().map(|job| (*job).to_owned()).collect();
        Verdict::RollBack(waves.iter().map(wave).collect())
    };
    let table = [
        ("", Verdict::Safe),
        ("0cp 1cpr 2", Verdict::Safe),
        ("0r 1", Verdict::Safe),
        ("0cr", waves(&[&["0cr"]])),
        ("0cr 1cp 2cr1 2cr2 2r3 4r", waves(&[&["2cr1", "2cr2"], &["0cr"]])),
        ("0cr 1c 2cr", Verdict::Blocked),
        ("0cr 1 2cr", waves(&[&["2cr"], &["0cr"]])),
    ];
    for (text, expected) in table {
        assert_eq!(classify(&ran(text)), expected, "{text}");
    }
}
