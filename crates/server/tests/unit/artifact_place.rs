use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use std::sync::Arc;
use windlass_engine::{Engine, Settings, clock, memory::Memory};
use windlass_server::artifact_place::{MARK, check, mark};

#[tokio::test]
async fn servers_of_one_database_use_one_place_for_artifacts() {
    let memory = || Arc::new(Memory::new(Arc::new(clock::System::default())));
    let engine = Engine::start(memory(), Settings::default()).await.unwrap();
    let (first, second) = (InMemory::new(), InMemory::new());
    check(&engine, &first, "/one", false).await.unwrap();
    check(&engine, &first, "/one", false).await.unwrap();
    let why = check(&engine, &second, "/two", false).await.unwrap_err();
    assert!(why.contains("/two is not where") && why.contains("are in /one"), "{why}");
    assert!(mark(&second, "/two").await.unwrap().is_none(), "what is refused is left alone");

    // Moved with the mark: the same place under another name.
    let moved = InMemory::new();
    let bytes = first.get(&Path::from(MARK)).await.unwrap().bytes().await.unwrap();
    moved.put(&Path::from(MARK), bytes.into()).await.unwrap();
    check(&engine, &moved, "/moved", false).await.unwrap();

    check(&engine, &second, "/two", true).await.unwrap();
    check(&engine, &second, "/two", false).await.unwrap();
    assert!(check(&engine, &first, "/one", false).await.is_err(), "the older place is not it any more");

    // Servers of another database would take these files for their own orphans.
    let other = Engine::start(memory(), Settings::default()).await.unwrap();
    let why = check(&other, &second, "/two", false).await.unwrap_err();
    assert!(why.contains("another database's"), "{why}");
    check(&other, &InMemory::new(), "/three", false).await.unwrap();
}
