use std::sync::Arc;
use windlass_core::Namespace;
use windlass_engine::{Engine, Settings, clock, memory::Memory};
use windlass_product::{
    Nothing, Products,
    bom::{Mode, NewRow, below_within, write},
    items::{self, NewItem},
};

#[tokio::test]
async fn a_bill_of_material_is_read_up_to_its_limit_and_no_further() {
    let memory = Arc::new(Memory::new(Arc::new(clock::System::default())));
    let engine = Engine::start(memory, Settings::default()).await.unwrap();
    let products = Products::new(engine, Namespace::default(), Arc::default(), Arc::new(Nothing));
    for part in ["CAR", "AXLE", "WHEEL", "BOLT"] {
        let new = NewItem { part_number: Some(part.into()), ..NewItem::default() };
        items::create(&products, &"ann".into(), &new).await.unwrap();
    }
    for (parent, child) in [("CAR", "AXLE"), ("AXLE", "WHEEL"), ("WHEEL", "BOLT")] {
        write(&products, parent, child, &NewRow::default(), Mode::Add).await.unwrap();
    }
    let leaves = async |max| below_within(&products, "CAR", u32::MAX, max).await.map(|bom| bom.flat("CAR").unwrap());
    assert_eq!(leaves(3).await.unwrap(), [("BOLT".to_owned(), 1.0)]);
    assert_eq!(leaves(2).await.unwrap_err().to_string(), "rows: 3 is more than the 2 allowed");
}
