mod acquire;
mod compare;
mod course;
mod document;
mod entity;
mod expression;
mod lanes;
mod publish;
mod reference;
mod secrets;
mod step;
mod template;
mod undo;
mod updates;

use serde_json::Value;

/// Replaces what is at this pointer; null removes it.
fn put(document: &mut Value, pointer: &str, value: Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(field)
    } else {
        parent.insert(field.into(), value)
    };
}
