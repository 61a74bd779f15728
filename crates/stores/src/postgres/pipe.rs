//! Sending now and waiting later, so that many statements share one round trip.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A statement that is on its way.
pub struct Sent<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    early: Option<T>,
}

/// Polls once. A query of tokio-postgres hands its bytes over at the first poll, so that statements reach the server in the
/// order of these calls, whatever is awaited first.
pub fn send<'a, T>(future: impl Future<Output = T> + Send + 'a) -> Sent<'a, T> {
    let mut future: Pin<Box<dyn Future<Output = T> + Send + 'a>> = Box::pin(future);
    let early = match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    };
    Sent { future, early }
}

impl<T, E> Sent<'_, Result<T, E>> {
    /// Whether it never left: the connection was gone, or a parameter could not be encoded.
    pub fn failed_at_once(&self) -> bool {
        matches!(self.early, Some(Err(_)))
    }
}

impl<T: Unpin> Future for Sent<'_, T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match self.early.take() {
            Some(value) => Poll::Ready(value),
            None => self.future.as_mut().poll(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_future_starts_before_it_is_awaited() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sent = send(async move { sender.send(7).map_err(|_| "nobody listens") });
        assert_eq!(receiver.await, Ok(7));
        assert!(!sent.failed_at_once());
        assert_eq!(sent.await, Ok(()));
        assert!(send(async { Err::<(), _>("early") }).failed_at_once());
    }
}
