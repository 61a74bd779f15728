//! A bad network in user space: between the store and the database, and it can be slow, silent, or cut.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
    sync::Notify,
};

#[derive(Clone, Default)]
pub struct Weather {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    delay_ms: AtomicU64,
    silent: AtomicBool,
    refuses: AtomicBool,
    refused: AtomicU64,
    /// How often the connections there were have been stranded.
    stranded: AtomicU64,
    cut: Notify,
    changed: Notify,
}

impl Weather {
    /// Everything takes so much longer, each way.
    pub fn delay(&self, delay: Duration) {
        self.inner.delay_ms.store(delay.as_millis() as u64, Ordering::Relaxed);
    }
    /// Nothing gets through, and nobody is told.
    pub fn silence(&self, silent: bool) {
        self.inner.silent.store(silent, Ordering::Relaxed);
        self.inner.changed.notify_waiters();
    }
    /// New connections end at once.
    pub fn refuse(&self, refuses: bool) {
        self.inner.refuses.store(refuses, Ordering::Relaxed);
    }
    pub fn refused(&self) -> u64 {
        self.inner.refused.load(Ordering::Relaxed)
    }
    /// Ends all connections there are.
    pub fn cut(&self) {
        self.inner.cut.notify_waiters();
    }
    /// Nothing gets through on the connections there are, for good; new ones are sound.
    pub fn strand(&self) {
        self.inner.stranded.fetch_add(1, Ordering::Relaxed);
    }

    async fn pass(&self, born: u64) {
        if self.inner.stranded.load(Ordering::Relaxed) > born {
            std::future::pending::<()>().await;
        }
        while self.inner.silent.load(Ordering::Relaxed) {
            let changed = self.inner.changed.notified();
            if self.inner.silent.load(Ordering::Relaxed) {
                changed.await;
            }
        }
        let delay = self.inner.delay_ms.load(Ordering::Relaxed);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await; // The network is slow.
        }
    }
}

/// Listens on a port of its own and passes on to `port`. Returns its own port.
pub async fn start(port: u16, weather: Weather) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(join(near, port, weather.clone()));
        }
    });
    own
}

async fn join(near: TcpStream, port: u16, weather: Weather) {
    if weather.inner.refuses.load(Ordering::Relaxed) {
        weather.inner.refused.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    drop((near.set_nodelay(true), far.set_nodelay(true)));
    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
    let born = weather.inner.stranded.load(Ordering::Relaxed);
    tokio::select! {
        () = pump(near_read, far_write, &weather, born) => {}
        () = pump(far_read, near_write, &weather, born) => {}
        () = weather.inner.cut.notified() => {}
    }
}

async fn pump(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, weather: &Weather, born: u64) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        weather.pass(born).await;
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
