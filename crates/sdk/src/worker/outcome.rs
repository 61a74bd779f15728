//! What a handler says in the end.

use serde::Serialize;
use std::time::Duration;
use windlass_api::Json;

/// How an attempt ended.
#[derive(Debug)]
pub enum Outcome {
    Complete(Option<Json>),
    Fail(Failure),
    /// Give the job back unharmed: no attempt is charged.
    Release,
    /// Give the job back because this worker cannot run it: no attempt is charged, and nobody gets it for so long.
    PassOn {
        why: String,
        delay: Duration,
    },
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// Trying again would not help.
    pub permanent: bool,
}

impl Failure {
    /// A failure that another attempt may get around.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), permanent: false }
    }

    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), permanent: true }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl Outcome {
    /// Success with a result.
    pub fn result(value: &impl Serialize) -> Self {
        match serde_json::value::to_raw_value(value) {
            Ok(json) => Outcome::Complete(Some(json)),
            Err(error) => Outcome::Fail(Failure::permanent(format!("the result is not valid JSON: {error}"))),
        }
    }
}

/// A value that can be written as JSON is the result; `()` is none.
impl<T: Serialize> From<Result<T, Failure>> for Outcome {
    fn from(result: Result<T, Failure>) -> Self {
        match result.map(|value| Outcome::result(&value)) {
            Ok(Outcome::Complete(Some(json))) if json.get() == "null" => Outcome::Complete(None),
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Fail(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_outcomes() {
        let json = |outcome: Outcome| match outcome {
            Outcome::Complete(json) => json.map(|json| json.get().to_owned()),
            other => panic!("{other:?}"),
        };
        assert_eq!(json(Ok(()).into()), None);
        assert_eq!(json(Ok(vec![1, 2]).into()).as_deref(), Some("[1,2]"));
        let failed: Result<(), _> = Err(Failure::permanent("no"));
        assert!(matches!(failed.into(), Outcome::Fail(Failure { permanent: true, .. })));
        let failure = Failure::from(std::io::Error::other("disk"));
        assert_eq!(failure, Failure::new("disk"));
    }
}
