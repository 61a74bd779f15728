//! Jobs, as they are listed and read.

use super::{
    super::{Bench, Fresh, snapshot},
    build::{accept, claim, complete, default, id, job, key, leases, ns, submit, tags, tick},
};
use crate::store::{JobQuery, NamePrefix, Store};
use windlass_core::{
    Command, Facet, Job, JobId, JobKey, Millis, Payload, RunId, State, WorkerId,
    commands::{
        fail::Fail,
        holder::Holder,
        release::Release,
        submit::{NewJob, Submit},
        submit_run::{RunNode, SubmitRun},
    },
};

async fn all(store: &dyn Store, query: &JobQuery, page: usize) -> Vec<Job> {
    let mut query = JobQuery { limit: page, ..query.clone() };
    let mut found: Vec<Job> = Vec::new();
    loop {
        let part = store.jobs(&query).await.expect("the store answers");
        assert!(part.len() <= page, "{} jobs on a page of {page}", part.len());
        let Some(last) = part.last() else { return found };
        query.go_on_after(last);
        found.extend(part);
    }
}

/// Newest first, whatever the size of a page, also where two namespaces use the same id.
pub async fn pages(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let mut commands = Vec::new();
    // Not in the order of their ids.
    for number in (0..70).map(|at| at * 37 % 70) {
        commands.push(submit(job(number)));
        if number % 3 == 0 {
            commands.push(Submit { namespace: ns("other"), job: job(number) }.into());
        }
    }
    accept(&mut bench, commands).await;
    let mut expected: Vec<(JobId, &str)> = (0..70).map(|number| (id(number), "default")).collect();
    expected.extend((0..70).filter(|number| number % 3 == 0).map(|number| (id(number), "other")));
    expected.sort();
    expected.reverse();
    for page in [1, 2, 7, 64, 1_000] {
        let found = all(&*bench.store, &JobQuery::default(), page).await;
        let found: Vec<(JobId, &str)> = found.iter().map(|job| (job.key.id, job.key.namespace.as_str())).collect();
        assert_eq!(found, expected, "with pages of {page}");
    }
    let none = bench.store.jobs(&JobQuery::default()).await.expect("the store answers");
    assert!(none.is_empty(), "a page of none has none");
}

/// Jobs in every state, in two namespaces, in a run, with facets, held by two workers.
async fn crowd(bench: &mut Bench) {
    let mut commands = Vec::new();
    for number in 0..40 {
        let mut new = job(number);
        new.facets = vec![Facet::new("room", ["a", "b"][number as usize % 2])];
        if number % 5 == 0 {
            new.facets.push(Facet::new("item", "a"));
        }
        new.parents = if number == 39 { vec![id(38)] } else { Vec::new() };
        new.run_at = (number == 37).then(|| super::super::START + Millis(60_000));
        new.priority = number as i32;
        commands.push(submit(new.clone()));
        commands.push(Submit { namespace: ns("other"), job: NewJob { parents: Vec::new(), ..new } }.into());
    }
    let node = |name: &str, number: u64| RunNode { name: name.into(), needs: Vec::new(), job: job(number) };
    let nodes = vec![node("a", 100), node("b", 101)];
    let run = RunId::from_u128(7);
    commands.push(SubmitRun::new(default(), run, nodes).into());
    accept(bench, commands).await;
    let first = leases(bench, claim("w1", tags(&[]), 10, 1_000)).await;
    leases(bench, claim("w2", tags(&[]), 5, 2_000)).await;
    let mut reports = Vec::new();
    for (at, leased) in first.iter().enumerate() {
        match at % 3 {
            0 => reports.push(complete(leased.lease, "1")),
            1 => {
                let holder = Holder::lease(&default(), leased.lease);
                reports
                    .push(Fail { holder, message: "no".into(), retryable: false, result: Default::default() }.into());
            }
            _ => {}
        }
    }
    accept(bench, reports).await;
}

/// Each filter alone and together gives exactly the jobs that fit, and so does counting them.
pub async fn filters(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    crowd(&mut bench).await;
    let everything = snapshot::all_jobs(&*bench.store, 1_000).await.expect("the store answers");
    assert_eq!(everything.len(), 82);
    let worker = |name: &str| Some(WorkerId::trusted(name));
    let facet = |name: &str, value: &str| Some(Facet::new(name, value));
    let queries = [
        JobQuery { namespace: Some(default()), ..JobQuery::default() },
        JobQuery { namespace: Some(ns("other")), ..JobQuery::default() },
        JobQuery { namespace: Some(ns("nobody")), ..JobQuery::default() },
        JobQuery { states: vec![State::Pending], ..JobQuery::default() },
        JobQuery { namespace: Some(default()), states: vec![State::Completed, State::Failed], ..JobQuery::default() },
        JobQuery { namespace: Some(default()), states: State::ALL.to_vec(), ..JobQuery::default() },
        JobQuery { namespace: Some(default()), facet: facet("room", "a"), ..JobQuery::default() },
        JobQuery { namespace: Some(default()), facet: facet("item", "b"), ..JobQuery::default() },
        JobQuery {
            namespace: Some(default()),
            facet: facet("item", "a"),
            states: vec![State::Pending, State::Claimed],
            ..JobQuery::default()
        },
        JobQuery { namespace: Some(default()), run: Some(RunId::from_u128(7)), ..JobQuery::default() },
        JobQuery { namespace: Some(default()), run: Some(RunId::from_u128(8)), ..JobQuery::default() },
        JobQuery { namespace: Some(ns("other")), run: Some(RunId::from_u128(7)), ..JobQuery::default() },
        JobQuery { namespace: Some(default()), holder: worker("w1"), ..JobQuery::default() },
        JobQuery { namespace: Some(default()), holder: worker("w2"), ..JobQuery::default() },
        JobQuery { namespace: Some(ns("other")), holder: worker("w1"), ..JobQuery::default() },
    ];
    let mut seen = 0;
    for query in &queries {
        let expected: Vec<&JobKey> = everything.iter().filter(|job| query.fits(job)).map(|job| &job.key).collect();
        for page in [3, 100] {
            let found = all(&*bench.store, query, page).await;
            let found: Vec<&JobKey> = found.iter().map(|job| &job.key).collect();
            assert_eq!(found, expected, "{query:?}");
        }
        for max in [0, 2, 1_000] {
            let count = bench.store.count(query, max).await.expect("the store answers");
            assert_eq!(count, expected.len().min(max), "counting up to {max}: {query:?}");
        }
        seen += expected.len();
    }
    assert!(seen > 200, "the queries hardly found anything: {seen}");
}

/// By the beginning of their names, the last name first; jobs of one name newest first; finished or not, on pages of any size.
pub async fn names(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let mut commands = Vec::new();
    let names = ["nightly", "nightly-2", "nightly-10", "Nightly", "night", "nightl\u{10ffff}", "nigh%", "n_ghtly"];
    for number in 0..60 {
        let name = names.get(number as usize % 9).map(|name| (*name).into());
        let new = NewJob { name, facets: vec![Facet::new("room", "a")], ..job(number * 37 % 60) };
        if number % 4 == 0 {
            commands.push(Submit { namespace: ns("other"), job: new.clone() }.into());
        }
        commands.push(submit(new));
    }
    accept(&mut bench, commands).await;
    let held = leases(&mut bench, claim("w", tags(&[]), 20, 1_000)).await;
    accept(&mut bench, held.iter().take(15).map(|leased| complete(leased.lease, "1")).collect()).await;
    let everything = snapshot::all_jobs(&*bench.store, 1_000).await.expect("the store answers");
    let query = |prefix: &str| {
        let name = Some(NamePrefix { prefix: prefix.into(), before: None });
        JobQuery { namespace: Some(default()), name, ..JobQuery::default() }
    };
    let queries = [
        query("nightly"),
        query("nightly-"),
        query("night"),
        query("nigh%"),
        query("n_"),
        query("nobody"),
        query("nightl\u{10ffff}"),
        JobQuery { namespace: None, ..query("nightly") },
        JobQuery { states: vec![State::Completed], ..query("n") },
        JobQuery { states: vec![State::Pending, State::Claimed], ..query("nightly") },
        JobQuery { facet: Some(Facet::new("room", "a")), ..query("nightly") },
        JobQuery { holder: Some(WorkerId::trusted("w")), ..query("night") },
    ];
    for query in &queries {
        let mut expected: Vec<Job> = everything.iter().filter(|job| query.fits(job)).cloned().collect();
        query.sort(&mut expected);
        for page in [1, 3, 100] {
            assert_eq!(all(&*bench.store, query, page).await, expected, "{query:?} with pages of {page}");
        }
        for max in [0, 2, 1_000] {
            let count = bench.store.count(query, max).await.expect("the store answers");
            assert_eq!(count, expected.len().min(max), "counting up to {max}: {query:?}");
        }
    }
    let found = all(&*bench.store, &queries[0], 100).await;
    assert!(found.len() > 15 && found.is_sorted_by_key(|job| std::cmp::Reverse((job.spec.name.clone(), job.key.id))));
    let elsewhere = Some(NamePrefix { prefix: "nigh".into(), before: Some("zz".into()) });
    let forged = JobQuery { name: elsewhere, before: Some((default(), id(0))), limit: 100, ..query("") };
    let found = bench.store.jobs(&forged).await.expect("the store answers");
    assert!(found.iter().all(|job| job.spec.name.as_deref().is_some_and(|name| name.starts_with("nigh"))));
    bench.set(Millis(bench.limits.retention.0 + 1));
    tick(&mut bench).await;
    let completed = JobQuery { states: vec![State::Completed], ..query("n") };
    assert_eq!(bench.store.count(&completed, 100).await.expect("the store answers"), 0, "removed with its name");
}

/// Several at once, in the order of their names: finished, unfinished, of another namespace, and some that there are not.
pub async fn named(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    accept(&mut bench, (0..4).map(|number| submit(job(number))).collect()).await;
    accept(&mut bench, vec![Submit { namespace: ns("other"), job: job(1) }.into()]).await;
    let held = leases(&mut bench, claim("w1", tags(&[]), 2, 10)).await;
    accept(&mut bench, vec![complete(held[0].lease, "first"), complete(held[1].lease, "")]).await;
    let names = [key(3), key(9), JobKey::new(&ns("other"), id(1)), key(1), key(0), JobKey::new(&ns("none"), id(1))];
    let found = bench.store.jobs_named(&names).await.expect("the store answers");
    let states: Vec<(JobKey, State)> = found.iter().map(|job| (job.key.clone(), job.state)).collect();
    let expected = [
        (names[0].clone(), State::Pending),
        (names[2].clone(), State::Pending),
        (names[3].clone(), State::Completed),
        (names[4].clone(), State::Completed),
    ];
    assert_eq!(states, expected);
    for job in &found {
        assert_eq!(Some(job), bench.store.job(&job.key).await.expect("the store answers").as_ref(), "as if read alone");
    }
    let results = bench.store.results(&names).await.expect("the store answers");
    assert_eq!(results, [(key(0), Payload::from("first"))], "an empty result is none");
    let mut large = job(5);
    large.payload = Payload::from("x".repeat(11).as_str());
    let mut small = job(6);
    small.payload = Payload::from("y".repeat(10).as_str());
    accept(&mut bench, vec![submit(large), submit(small)]).await;
    let payloads = bench.store.small_payloads(&[key(6), key(5), key(9), key(6)], 10).await.expect("the store answers");
    let one = (key(6), Payload::from("y".repeat(10).as_str()));
    assert_eq!(payloads, [one.clone(), one], "what is too large is left out");
    assert!(bench.store.small_payloads(&[], 10).await.expect("the store answers").is_empty());
    assert!(bench.store.jobs_named(&[]).await.expect("the store answers").is_empty());
    assert!(bench.store.results(&[]).await.expect("the store answers").is_empty());
}

/// Payload and result byte for byte, past attempts in order, children by id; nothing for what is not there.
pub async fn bodies(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let binary: Vec<u8> = (0..=255).collect();
    let mut first = job(1);
    first.payload = Payload::from(binary.clone());
    let mut commands = vec![submit(first)];
    for number in [9, 7, 8] {
        let mut child = job(number);
        child.parents = vec![id(1)];
        commands.push(submit(child));
    }
    accept(&mut bench, commands).await;
    let body = bench.store.body(&key(1)).await.expect("the store answers").expect("it is there");
    assert_eq!(body.payload.as_bytes(), binary);
    assert_eq!((body.result, body.attempts.len()), (None, 0));
    assert_eq!(body.children, [id(7), id(8), id(9)]);
    for attempt in 0..4 {
        let leased = leases(&mut bench, claim("w1", tags(&[]), 1, 10 + attempt)).await.remove(0);
        assert_eq!((leased.lease.job, leased.payload.as_bytes()), (id(1), binary.as_slice()));
        let holder = Holder::lease(&default(), leased.lease);
        let back: Command = match attempt % 2 {
            0 => Fail { holder, message: format!("{attempt}").into(), retryable: true, result: Default::default() }
                .into(),
            _ => Release { holder }.into(),
        };
        accept(&mut bench, vec![back]).await;
    }
    let leased = leases(&mut bench, claim("w1", tags(&[]), 1, 30)).await.remove(0);
    accept(&mut bench, vec![complete(leased.lease, "done\0")]).await;
    let body = bench.store.body(&key(1)).await.expect("the store answers").expect("it is there");
    assert_eq!(body.result.expect("it has one").as_bytes(), b"done\0");
    let numbers: Vec<u32> = body.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "the fifth is told by the job itself");
    for missing in [key(77), JobKey::new(&ns("other"), id(1))] {
        assert_eq!(bench.store.body(&missing).await.expect("the store answers"), None);
        assert_eq!(bench.store.job(&missing).await.expect("the store answers"), None);
    }
    bench.set(Millis(bench.limits.retention.0 + 1));
    tick(&mut bench).await;
    assert_eq!(
        bench.store.body(&key(1)).await.expect("the store answers"),
        None,
        "removed with all that belongs to it"
    );
}

/// The one that was queued first, whatever its lane, its priority and its namespace; and namespaces by their records and jobs.
pub async fn oldest(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let oldest =
        async |bench: &Bench| bench.store.oldest_pending().await.expect("the store answers").map(|job| job.key);
    assert_eq!(oldest(&bench).await, None);
    let job_of = |number: u64, priority: i32, tag: &str| NewJob { priority, tags: tags(&[tag]), ..job(number) };
    // The last in claim order is the first in time.
    accept(&mut bench, vec![submit(job_of(9, 7, "z"))]).await;
    let other = Submit { namespace: ns("a"), job: job_of(1, -5, "a") };
    accept(&mut bench, vec![submit(job_of(8, 0, "z")), submit(job_of(2, 0, "a")), other.into()]).await;
    assert_eq!(oldest(&bench).await, Some(key(9)));
    // Held ones wait no more.
    leases(&mut bench, claim("w", tags(&["z"]), 2, 1)).await;
    assert_eq!(oldest(&bench).await, Some(key(2)));
    leases(&mut bench, claim("v", tags(&["a"]), 1, 10)).await;
    assert_eq!(oldest(&bench).await, Some(JobKey::new(&ns("a"), id(1))));
    let found = async |limit| bench.store.namespaces(limit).await.expect("the store answers");
    assert_eq!(found(10).await, [ns("a"), default()], "where jobs or workers are");
    assert_eq!(found(1).await, [ns("a")]);
    assert!(found(0).await.is_empty());
}

/// The first of each queue, the one that has waited longest first, and nothing of other namespaces.
pub async fn heads(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let job_of = |number: u64, priority: i32, tag: &str| NewJob { priority, tags: tags(&[tag]), ..job(number) };
    let other = Submit { namespace: ns("a"), job: job_of(1, 0, "a") };
    accept(&mut bench, vec![other.into(), submit(job_of(9, 7, "z"))]).await;
    accept(&mut bench, vec![submit(job_of(8, 0, "z")), submit(job_of(7, 7, "z")), submit(job_of(2, 0, "a"))]).await;
    let heads = async |limit| {
        let found = bench.store.queue_heads(&default(), limit).await.expect("the store answers");
        found.into_iter().map(|job| job.key).collect::<Vec<_>>()
    };
    assert_eq!(heads(10).await, [key(9), key(8), key(2)]);
    assert_eq!(heads(2).await, [key(9), key(8)]);
}
