use crate::rules::story::{Story, after, failure, id, keyed, once};
use windlass_core::concurrency::KeyUse;

#[test]
fn a_key_lets_through_so_many_in_order() {
    let mut story = Story::new();
    let mut urgent = keyed(4, 2);
    urgent.priority = 1;
    for job in [keyed(1, 2), keyed(2, 2), keyed(3, 2), urgent] {
        story.submit(job);
    }
    assert_eq!(story.states(4), ["pending", "pending", "blocked", "blocked"]);
    let leases = story.claims("w", 5);
    assert_eq!(leases.len(), 2, "what is blocked is never stepped over");
    story.complete(leases[0]).unwrap();
    assert_eq!(story.states(4)[2..], ["blocked", "pending"], "the urgent one first");
    story.fail(leases[1]).unwrap();
    assert_eq!(story.states(4)[2..], ["pending", "pending"]);
}

#[test]
fn many_places_freed_in_one_batch_go_to_as_many() {
    let mut story = Story::new();
    for number in 1..=40 {
        story.submit(keyed(number, 10));
    }
    let leases = story.claims("w", 40);
    let commands = leases.iter().map(|&lease| failure(lease).into()).collect();
    let before = story.tables.loads;
    story.batch(commands);
    assert_eq!(story.claims("w", 40).len(), 10);
    assert!(story.tables.loads - before < 10, "{} loads", story.tables.loads - before);
}

#[test]
fn where_limits_differ_every_free_place_is_used() {
    let mut story = Story::new();
    for number in 1..=3 {
        story.submit(keyed(number, 3));
    }
    let leases = story.claims("w", 3);
    story.submit(keyed(4, 1));
    story.submit(keyed(5, 3));
    story.submit(keyed(6, 3));
    story.complete(leases[0]).unwrap();
    assert_eq!(story.states(6)[3..], ["blocked", "blocked", "blocked"], "nobody overtakes the first in line");
    story.complete(leases[1]).unwrap();
    story.complete(leases[2]).unwrap();
    assert_eq!(story.states(6)[3..], ["pending", "pending", "pending"]);
}

#[test]
fn a_job_that_waits_for_others_takes_no_place() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    let mut child = after(2, &[1]);
    child.concurrency = keyed(2, 1).concurrency;
    story.submit(child);
    story.submit(keyed(3, 1));
    assert_eq!(story.states(3)[1..], ["blocked", "pending"]);
    story.complete(lease).unwrap();
    assert_eq!(story.states(3)[1..], ["blocked", "pending"]);
    let lease = story.claim("w");
    assert_eq!(lease.job, id(3));
    story.cancel(3).unwrap();
    assert_eq!(story.states(3)[1..], ["blocked", "cancelled"], "its holder may still be at it");
    assert!(story.release(lease).is_err());
    assert_eq!(story.states(3)[1..], ["pending", "cancelled"]);
    story.cancel(2).unwrap();
    assert!(story.typed::<KeyUse>("k").is_none(), "an unused key leaves nothing behind");
}
