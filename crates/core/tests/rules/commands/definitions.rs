use crate::rules::story::{Answer, Story, code, ns};
use windlass_core::{
    Reply,
    commands::definitions::{DeleteDefinition, PutDefinition},
    definition::{Definition, DefinitionHead, version_key},
};

fn version(answer: &Answer) -> u32 {
    match answer {
        Ok(Reply::Definition(definition)) => definition.version,
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_body_is_another_version_and_a_deleted_name_comes_back() {
    let mut story = Story::new();
    let put = |body: &str| PutDefinition { namespace: ns(), name: "d".into(), body: body.into() };
    let delete = || DeleteDefinition { namespace: ns(), name: "d".into() };
    assert_eq!(code(&story.run(delete())), "not-found");
    let versions: Vec<u32> = ["a", "a", "b"].iter().map(|body| version(&story.run(put(body)))).collect();
    assert_eq!(versions, [1, 1, 2]);
    story.run(delete()).unwrap();
    assert_eq!(code(&story.run(delete())), "not-found");
    assert!(story.typed::<Definition>(&version_key("d", 1)).is_some(), "versions stay for the jobs that name them");
    assert_eq!(version(&story.run(put("b"))), 2);
    assert_eq!(story.typed::<DefinitionHead>("d").unwrap().deleted_at, None);
    let events = ["definition_put", "definition_put", "definition_deleted", "definition_put"];
    assert_eq!(story.events(None), events);
    assert_eq!(code(&story.run(PutDefinition { name: "".into(), ..put("a") })), "invalid");
    assert_eq!(code(&story.run(put(&"x".repeat((1 << 20) + 1)))), "too-large");
}
