use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use windlass_core::Namespace;
use windlass_engine::{Engine, Settings, clock, memory::Memory};
use windlass_product::{
    Error, Nothing, Products,
    records::{self, Change, Put},
    write_change,
};

/// Takes so long to work its change out that whoever began together reads the same.
async fn count_up(products: Products, tries: Arc<AtomicUsize>) -> Result<u64, Error> {
    write_change!(&products, Error, {
        tries.fetch_add(1, Ordering::Relaxed);
        let found = records::get(&products, records::COUNTER, "c").await?;
        let next = found.as_ref().map_or(1, |kept| kept.value + 1);
        tokio::time::sleep(Duration::from_millis(2)).await; // So long it takes to work the change out.
        let put = Put::new(&products, records::COUNTER, "c", records::as_found(found.as_ref())).value(&next)?;
        Ok(Change { commands: vec![put], answer: next })
    })
}

#[tokio::test]
async fn those_who_were_outrun_do_not_outrun_each_other() {
    const CALLERS: usize = 120;
    let memory = Arc::new(Memory::new(Arc::new(clock::System::default())));
    let engine = Engine::start(memory, Settings::default()).await.unwrap();
    let products = Products::new(engine, Namespace::default(), Arc::default(), Arc::new(Nothing));
    let tries = Arc::new(AtomicUsize::new(0));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(count_up(products.clone(), tries.clone()));
    }
    let mut counted: Vec<u64> = callers.join_all().await.into_iter().map(Result::unwrap).collect();
    counted.sort_unstable();
    assert_eq!(counted, (1..=CALLERS as u64).collect::<Vec<_>>());
    // Each loses once, against the first. If all tried again at once, some would lose more often than is allowed.
    let tries = tries.load(Ordering::Relaxed);
    assert!(tries < 3 * CALLERS, "{tries} tries");
}
