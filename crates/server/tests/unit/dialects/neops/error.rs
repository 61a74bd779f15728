use http::StatusCode;
use serde_json::json;
use windlass_server::{
    dialects::neops::error::HttpError,
    problem::{Code, Problem},
};

#[test]
fn refusals_say_where_and_what_in_three_fields() {
    let error = HttpError::from(Problem::invalid("steps[0].label", "is reserved"));
    let body = json!({"statusCode": 400, "message": "steps[0].label: is reserved", "error": "Bad Request"});
    assert_eq!((error.status, error.body()), (StatusCode::BAD_REQUEST, body));
    let error = HttpError::typed(StatusCode::CONFLICT, "VersionDeleted", "taken").with("suggestedVersion", "1.0.1");
    assert_eq!(
        (&error.body()["error"], &error.body()["suggestedVersion"]),
        (&json!("VersionDeleted"), &json!("1.0.1"))
    );
    assert_eq!(HttpError::from(Problem::new(Code::TooLarge, "no")).status, StatusCode::PAYLOAD_TOO_LARGE);
}
