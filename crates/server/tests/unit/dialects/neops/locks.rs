use windlass_api::Uuid;
use windlass_core::Command;
use windlass_plan::neops::reference::EntityType::{Device, Interface};
use windlass_server::dialects::neops::locks::{release, take};

#[test]
fn locks_are_taken_in_one_order_and_each_once() {
    let keys = |commands: Vec<Command>| -> Vec<String> {
        let key = |command: Command| match command {
            Command::PutRecord(put) => put.key.key.to_string(),
            Command::DeleteRecord(delete) => delete.key.key.to_string(),
            other => panic!("{other:?}"),
        };
        commands.into_iter().map(key).collect()
    };
    let wanted = [(Interface, 3), (Device, 7), (Device, 7), (Device, 10)];
    let expected = ["device/10", "device/7", "interface/3"];
    assert_eq!(keys(take(Uuid::from_u128(1), &wanted)), expected);
    assert_eq!(keys(release(&wanted)), expected);
}
