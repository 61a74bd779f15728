use tokio::time::Instant;
use windlass_core::{Namespace, RunId};
use windlass_server::planned::{Unit, later::Later};

#[test]
fn pauses_grow_to_five_minutes_and_end_when_the_turn_is_told_again() {
    let (later, mut now) = (Later::default(), Instant::now());
    let unit = |mark| Unit { namespace: Namespace::default(), run: RunId::from_u128(1), jobs: vec![None], mark };
    let mut pauses = Vec::new();
    for _ in 0..11 {
        later.note(&unit(1), now);
        assert!(later.waits(&unit(1), now) && !later.waits(&unit(2), now));
        let until = later.next().unwrap();
        pauses.push((until - now).as_secs());
        now = until;
        assert!(!later.waits(&unit(1), now), "its pause is over");
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    later.note(&unit(2), now);
    assert_eq!((later.next().unwrap() - now).as_secs(), 1, "from the beginning");
    later.retain(&[vec![unit(2)]]);
    assert!(later.waits(&unit(2), now));
    later.retain(&[]);
    assert_eq!(later.next(), None);
}
