use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use windlass_api::Uuid;
use windlass_core::{Millis, Timestamp};
use windlass_server::dialects::joblib::users::jwt::{AUDIENCE, Key, Wrong};

const NOW: Timestamp = Timestamp(1_794_712_140_250);

fn user() -> Uuid {
    Uuid::from_u128(7)
}

/// A token of any header and claims, signed as HS256 has it.
fn signed(secret: &[u8], header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = Hmac::<Sha256>::new_from_slice(secret).unwrap().chain_update(&message).finalize().into_bytes();
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

fn hs256() -> Value {
    json!({"alg": "HS256", "typ": "JWT"})
}

#[test]
fn a_token_says_who_and_since_when() {
    let key = Key::new(b"a secret of some length");
    let said = key.check(&key.mint(user(), NOW, Millis(3_600_000), None)).unwrap();
    assert_eq!((said.user, said.issued_at), (user(), Some(NOW)));
    assert_eq!(said.expires_at, Timestamp(1_794_715_741_000));
    let other = key.check(&key.mint(user(), NOW, Millis(60_000), Some(Uuid::from_u128(8)))).unwrap();
    assert_eq!(other.user, user());
}

/// Made by PyJWT, which is what the original signs with.
#[test]
fn tokens_of_the_original_are_good() {
    let key = Key::new(b"CHANGE-ME-IN-PRODUCTION-PLEASE!!");
    let claims = json!({"sub": user(), "aud": ["fastapi-users:auth"], "exp": 1_794_712_140});
    let said = key.check(&signed(b"CHANGE-ME-IN-PRODUCTION-PLEASE!!", &hs256(), &claims)).unwrap();
    assert_eq!((said.issued_at, said.expires_at), (None, Timestamp(1_794_712_140_000)));
}

#[test]
fn nothing_else_is_a_token() {
    let secret = b"a secret of some length";
    let key = Key::new(secret);
    let claims = json!({"sub": user(), "aud": AUDIENCE, "exp": 1_794_712_140});
    let good = signed(secret, &hs256(), &claims);
    assert!(key.check(&good).is_ok());
    let unsigned = format!("{}.", good.rsplit_once('.').unwrap().0);
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        signed(secret, &hs256(), &claims)
    };
    for (token, wrong) in [
        (signed(b"another secret", &hs256(), &claims), Wrong::Token),
        (signed(secret, &json!({"alg": "none"}), &claims), Wrong::Token),
        (signed(secret, &json!({"alg": "HS512"}), &claims), Wrong::Token),
        (signed(secret, &json!({"alg": "RS256"}), &claims), Wrong::Token),
        (unsigned, Wrong::Token),
        (with("aud", json!("fastapi-users:reset")), Wrong::Token),
        (with("aud", json!([])), Wrong::Token),
        (with("aud", Value::Null), Wrong::Token),
        (with("exp", Value::Null), Wrong::Token),
        (with("exp", json!("soon")), Wrong::Token),
        (with("sub", json!("nobody")), Wrong::Payload),
        (with("sub", Value::Null), Wrong::Payload),
        ("eyJ.eyJ.x".to_owned(), Wrong::Token),
    ] {
        assert_eq!(key.check(&token), Err(wrong), "{token}");
    }
}
