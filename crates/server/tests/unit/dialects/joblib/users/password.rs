use std::sync::Arc;
use windlass_engine::{Engine, Settings, clock::System, memory::Memory};
use windlass_server::dialects::joblib::users::password::Passwords;

#[tokio::test]
async fn a_password_fits_its_own_hash_and_no_other() {
    let store = Arc::new(Memory::new(Arc::new(System::default())));
    let engine = Engine::start(store, Settings::default()).await.unwrap();
    let passwords = Passwords::default();
    let stored = passwords.hash(&engine, "correct horse".into()).await.unwrap();
    assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
    assert!(passwords.fits(&engine, "correct horse".into(), Some(&stored)).await.unwrap());
    assert!(!passwords.fits(&engine, "correct horsf".into(), Some(&stored)).await.unwrap());
    assert!(!passwords.fits(&engine, "correct horse".into(), None).await.unwrap());
    assert_ne!(stored, passwords.hash(&engine, "correct horse".into()).await.unwrap(), "salted");
}
