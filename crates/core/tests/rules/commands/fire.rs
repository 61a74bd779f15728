use crate::rules::story::{Story, code, ns};
use windlass_core::{
    Facet, Millis, Timestamp,
    commands::fire::{DeleteSchedule, Fire, PutSchedule, RunSchedule},
    schedule::{Missed, Rule, Schedule, Template},
};

fn every(seconds: i64, next_at: i64) -> Schedule {
    let template = Template { payload: "{}".into(), ..Template::default() };
    Schedule::new("s", Rule::Every(Millis::from_secs(seconds)), Timestamp(next_at), template)
}

fn put(schedule: Schedule) -> PutSchedule {
    PutSchedule { namespace: ns(), schedule }
}

#[test]
fn missed_firings_are_made_up_by_one() {
    let mut story = Story::new();
    story.run(put(every(10, 1_005_000))).unwrap();
    for (wait, jobs, next) in [(4_999, 0, 1_005_000), (1, 1, 1_015_000), (35_000, 2, 1_045_000), (4_999, 2, 1_045_000)]
    {
        story.wait(wait);
        story.sweep();
        assert_eq!(story.tables.jobs.len(), jobs);
        assert_eq!(story.typed::<Schedule>("s").unwrap().next_at, Timestamp(next));
    }
}

#[test]
fn the_last_firings_are_remembered_also_when_the_schedule_is_changed() {
    let mut story = Story::new();
    story.run(put(every(10, 1_000_000))).unwrap();
    for _ in 0..25 {
        story.sweep();
        story.wait(10_000);
    }
    story.run(put(every(20, 2_000_000))).unwrap();
    let schedule = story.typed::<Schedule>("s").unwrap();
    assert_eq!((schedule.fired, schedule.recent.len()), (25, 20));
    assert!(schedule.recent.iter().all(|firing| story.tables.jobs.keys().any(|key| key.id == firing.job)));
    let times: Vec<i64> = schedule.recent.iter().map(|firing| firing.at.0).collect();
    assert_eq!((times[0], times[19]), (1_050_000, 1_240_000));
}

#[test]
fn what_is_run_by_hand_is_remembered_and_moves_no_time() {
    for paused in [false, true] {
        let mut story = Story::new();
        story.run(put(Schedule { paused, ..every(10, 1_005_000) })).unwrap();
        let run = |id: u128| RunSchedule {
            namespace: ns(),
            name: "s".into(),
            id: windlass_core::JobId::from_u128(id),
            owner: Some("ann".into()),
            unique: None,
        };
        story.run(run(7)).unwrap();
        let schedule = story.typed::<Schedule>("s").unwrap();
        assert_eq!((schedule.fired, schedule.next_at), (1, Timestamp(1_005_000)));
        assert_eq!(schedule.recent[0].job, windlass_core::JobId::from_u128(7));
        // The same again makes nothing.
        assert_eq!(code(&story.run(run(7))), "exists");
        assert_eq!((story.tables.jobs.len(), story.typed::<Schedule>("s").unwrap().fired), (1, 1));
    }
}

#[test]
fn what_came_too_late_is_let_go_where_asked() {
    for (missed, late, jobs) in
        [(Missed::Skip, 60_000, 1), (Missed::Skip, 60_001, 0), (Missed::Once, 600_000, 1), (Missed::Skip, 600_000, 0)]
    {
        let mut story = Story::new();
        story.run(put(Schedule { missed, ..every(10, 1_000_000) })).unwrap();
        let calendar = Rule::Calendar("0 3 * * *".into());
        story.run(put(Schedule { name: "c".into(), missed, rule: calendar, ..every(10, 1_000_000) })).unwrap();
        story.wait(late);
        story.sweep();
        assert_eq!(story.tables.jobs.len(), jobs, "{missed:?} {late} ms late, every ten seconds");
        assert!(story.typed::<Schedule>("s").unwrap().next_at > story.now);
        let next_at = story.now + Millis(1);
        let (expected_at, wall) = (Timestamp(1_000_000), story.now);
        let fire = Fire { namespace: ns(), name: "c".into(), expected_at, next_at, wall };
        story.run(fire).unwrap();
        assert_eq!(story.tables.jobs.len(), 2 * jobs, "{missed:?} {late} ms late, by the calendar");
        assert_eq!(story.typed::<Schedule>("c").unwrap().next_at, next_at);
    }
}

#[test]
fn a_paused_schedule_makes_no_jobs_and_keeps_its_count() {
    let mut story = Story::new();
    story.run(put(every(10, 1_000_000))).unwrap();
    story.sweep();
    story.run(put(Schedule { paused: true, ..every(10, 1_005_000) })).unwrap();
    story.wait(60_000);
    story.sweep();
    assert_eq!((story.tables.jobs.len(), story.typed::<Schedule>("s").unwrap().fired), (1, 1));
    let calendar = Rule::Calendar("0 3 * * *".into());
    story.run(put(Schedule { paused: true, rule: calendar, ..every(10, 1_005_000) })).unwrap();
    let (expected_at, next_at) = (Timestamp(1_005_000), Timestamp(2_000_000));
    assert_eq!(
        code(&story.run(Fire { namespace: ns(), name: "s".into(), expected_at, next_at, wall: next_at })),
        "invalid"
    );
}

#[test]
fn a_firing_makes_the_job_as_it_was_described() {
    let mut story = Story::new();
    let facets = vec![Facet::new("room", "blue")];
    let template = Template { facets: facets.clone(), priority: 3, ..Template::default() };
    story.run(put(Schedule { template, ..every(10, 1_000_000) })).unwrap();
    story.sweep();
    let job = story.tables.jobs.values().next().unwrap();
    assert_eq!((&job.spec.facets, job.priority), (&facets, 3));
}

#[test]
fn a_schedule_that_was_moved_fires_at_its_new_time_only() {
    let mut story = Story::new();
    story.run(put(every(10, 1_005_000))).unwrap();
    story.run(put(every(10, 1_008_000))).unwrap();
    story.wait(5_000);
    story.sweep();
    assert!(story.tables.jobs.is_empty());
    story.wait(3_000);
    story.sweep();
    assert_eq!(story.tables.jobs.len(), 1);
}

#[test]
fn what_could_not_be_submitted_cannot_be_scheduled() {
    let table = [
        (Schedule { name: "".into(), ..every(10, 0) }, "invalid"),
        (Schedule { name: "x".repeat(250).into(), ..every(10, 0) }, "too-large"),
        (Schedule { next_at: Timestamp(i64::MIN), ..every(10, 0) }, "invalid"),
        (every(0, 0), "invalid"),
        (
            Schedule {
                template: Template { extra: Some("x".repeat(70_000).into()), ..Template::default() },
                ..every(10, 0)
            },
            "too-large",
        ),
    ];
    for (schedule, expected) in table {
        assert_eq!(code(&Story::new().run(put(schedule.clone()))), expected, "{}", schedule.name);
    }
}

#[test]
fn a_calendar_is_fired_once_per_time_by_whoever_is_first() {
    let mut story = Story::new();
    story.run(put(Schedule { rule: Rule::Calendar("0 3 * * *".into()), ..every(1, 1_005_000) })).unwrap();
    story.wait(10_000);
    story.sweep();
    assert!(story.tables.jobs.is_empty(), "the sweep knows no calendars");
    let fire = |expected, next| Fire {
        namespace: ns(),
        name: "s".into(),
        expected_at: Timestamp(expected),
        next_at: Timestamp(next),
        wall: Timestamp(expected),
    };
    let answers = story.batch(vec![
        fire(1_005_000, 1_099_000).into(),
        fire(1_005_000, 1_099_000).into(),
        fire(1_099_000, 1_099_000).into(),
    ]);
    assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), ["ok", "invalid", "invalid"]);
    assert_eq!(story.tables.jobs.len(), 1);
    let delete = || DeleteSchedule { namespace: ns(), name: "s".into() };
    story.run(delete()).unwrap();
    assert_eq!(code(&story.run(delete())), "not-found");
    assert_eq!(code(&story.run(fire(1, 2))), "not-found");
}
