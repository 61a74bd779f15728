//! Users' tokens against every route there is.

use super::{register, send, superuser, token};
use crate::{
    roles::{let_in, may, status},
    support::Server,
};
use http::{Method, StatusCode};
use serde_json::json;
use windlass_core::principal::Role;
use windlass_server::route::Access;

#[tokio::test]
async fn users_are_editors_who_work_superusers_admins_and_elsewhere_they_are_nobody() {
    let server = Server::start().await;
    let root = superuser(&server, "root").await;
    let user = register(&server, "u@example.org", "p").await;
    let path = format!("/users/{}", user["id"].as_str().unwrap());
    send(&server, Method::PATCH, &path, &root, Some(json!({"is_superuser": false}))).await.expect(200);
    let plain = token(&server, "u@example.org", "p").await;
    let mut cells = 0;
    for route in windlass_server::routes().into_iter().filter(|route| route.access != Access::Open) {
        let at = format!("{} {}", route.method, route.path);
        for (token, role) in [(&root, Role::Admin), (&plain, Role::Editor)] {
            let got = status(&server, &route, Some(token)).await;
            if route.surface.name == "joblib" {
                let works = route.access == Access::Worker;
                assert_eq!(let_in(got), works || may(role, route.access), "{at} for {role:?}: {got}");
            } else {
                assert_eq!(got, StatusCode::UNAUTHORIZED, "{at}");
            }
            cells += 1;
        }
    }
    assert!(cells >= 200, "{cells} is not all of it");
}
