//! Users' tokens: JWTs signed with HMAC-SHA-256 and nothing else. Pure: the time comes from the caller.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    decode, encode,
    errors::{Error, ErrorKind},
    signature::{self, Signer, Verifier},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use windlass_api::Uuid;
use windlass_core::{Millis, Timestamp};

pub const AUDIENCE: &str = "fastapi-users:auth";

/// What signs and checks tokens. Shows itself to nobody.
pub struct Key {
    encode: EncodingKey,
    decode: DecodingKey,
    rules: Validation,
}

/// What a token says whose signature and audience are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    pub user: Uuid,
    /// None: it does not say.
    pub issued_at: Option<Timestamp>,
    pub expires_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Token,
    /// Signed by the right key, and yet it names no user.
    Payload,
}

#[derive(Deserialize)]
struct Claims {
    sub: Option<Value>,
    exp: f64,
    iat: Option<f64>,
}

#[derive(Serialize)]
struct Minted {
    sub: Uuid,
    aud: Value,
    exp: i64,
    /// With the part of the second, so that what ends all earlier tokens ends those of the same second too.
    iat: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_by: Option<Uuid>,
}

impl Key {
    pub fn new(secret: &[u8]) -> Self {
        // A second one is the same one.
        let _ = PROVIDER.install_default();
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_audience(&[AUDIENCE]);
        rules.set_required_spec_claims(&["exp", "aud"]);
        // By our own clock, and to the second.
        rules.validate_exp = false;
        Self { encode: EncodingKey::from_secret(secret), decode: DecodingKey::from_secret(secret), rules }
    }

    pub fn check(&self, token: &str) -> Result<Said, Wrong> {
        let claims = decode::<Claims>(token, &self.decode, &self.rules).map_err(|_| Wrong::Token)?.claims;
        let user = claims.sub.as_ref().and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
        Ok(Said { user: user.ok_or(Wrong::Payload)?, issued_at: claims.iat.map(at), expires_at: at(claims.exp) })
    }

    /// `by`: who wanted a token for somebody else.
    pub fn mint(&self, user: Uuid, now: Timestamp, lifetime: Millis, by: Option<Uuid>) -> String {
        let aud = if by.is_some() { json!(AUDIENCE) } else { json!([AUDIENCE]) };
        let exp = now.0.saturating_add(lifetime.0).div_euclid(1_000).saturating_add(1);
        let claims = Minted { sub: user, aud, exp, iat: now.0 as f64 / 1_000.0, impersonated_by: by };
        encode(&Header::new(Algorithm::HS256), &claims, &self.encode).expect("plain claims and a key of any length")
    }
}

fn at(seconds: f64) -> Timestamp {
    // Beyond what a number holds it is cut off, which is as good as for ever.
    Timestamp((seconds * 1_000.0).round() as i64)
}

/// The signatures jsonwebtoken asks for, by the packages this program has anyway.
static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

#[derive(Clone)]
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, secret: &[u8]) -> Result<Self, Error> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        Hmac::new_from_slice(secret).map(Self).map_err(|_| ErrorKind::InvalidKeyFormat.into())
    }
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?))
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.0.clone().chain_update(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let is = self.0.clone().chain_update(message).verify_slice(signature);
        is.map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
