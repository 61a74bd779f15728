use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use std::sync::Arc;
use windlass_server::{
    problem::{Code, Problem, Result},
    room::{FREE, Growing, Limits, Refused, Room, Rooms, STEP},
};

fn status(refused: Result<Room>) -> u16 {
    refused.err().map_or(0, |problem| problem.0.status)
}

#[test]
fn bodies_have_a_bound_in_all_and_one_for_each_principal() {
    let rooms = Rooms::new(Limits { total: 100, share: 60 });
    let (ann, ben): (Arc<str>, Arc<str>) = ("ann".into(), "ben".into());
    let first = rooms.take(&ann, 50).unwrap();
    assert_eq!(status(rooms.take(&ann, 11)), 429, "ann has her share");
    let second = rooms.take(&ben, 50).unwrap();
    assert_eq!(status(rooms.take(&ben, 10)), 503, "there is no more for anybody");
    drop(first);
    assert!(rooms.take(&ann, 50).is_ok());
    drop(second);
    assert_eq!(rooms.taken(), 0);
    // What they have is kept by name.
    assert_eq!([&ann, &ben].map(Arc::strong_count), [1, 1], "nothing is left of those who had some");
    assert!(rooms.take(&ann, 1_000).is_ok(), "one that is larger than all goes alone");
}

#[tokio::test]
async fn a_body_of_unknown_length_takes_room_as_it_grows_and_keeps_it_until_it_is_answered() {
    let rooms = Rooms::new(Limits { total: 1 << 20, share: 200 << 10 });
    let name: Arc<str> = "ann".into();
    let pieces = |count: usize| {
        let piece = || Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 10 << 10]));
        Body::from_stream(futures_util::stream::iter((0..count).map(move |_| piece())))
    };
    let large = |_: usize| Problem::new(Code::TooLarge, "it is");
    let room = rooms.take(&name, 0).unwrap();
    Growing::new(pieces(1), room.clone(), 1 << 20, large).collect().await.unwrap();
    assert_eq!(rooms.taken(), 0, "a small one is free");
    Growing::new(pieces(10), room.clone(), 1 << 20, large).collect().await.unwrap();
    assert_eq!(rooms.taken(), FREE + 2 * STEP, "it is read, and its request is not answered yet");
    let other = rooms.take(&name, 0).unwrap();
    let refused = Growing::new(pieces(20), other, 1 << 20, large).collect().await.unwrap_err();
    assert!(refused.into_inner().is::<Refused>());
    drop(room);
    assert_eq!(rooms.taken(), 0);
}
