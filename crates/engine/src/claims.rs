//! Claims, and the wait for work.

use crate::{
    delivery::Delivery,
    engine::{Engine, mixed_up},
    error::Error,
    ids,
    request::Replies,
    reserve,
    waiters::{Parked, Waiter},
};
use std::time::Duration;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};
use windlass_core::{
    HeadQuery, Leased, Namespace, Refusal, Reply, Tags, WorkerKey,
    commands::{
        ask::Ask,
        claim::{Claim, Offer},
    },
    worker::Worker,
};

/// How a wait for work ended.
enum Waited {
    /// The batch that made them ready has claimed them.
    Leased(Vec<Leased>),
    /// There is something to look for.
    Woken,
    /// Time is up, or the next look says why not.
    Over,
}

impl Engine {
    /// Claims jobs; if there are none, waits for some, at most so long. An empty list means none came.
    pub async fn claim(&self, mut claim: Claim, wait: Duration) -> Result<Vec<Leased>, Error> {
        if let Some(refusal) = self.inner().after.reserve.refuse_claim(self.store().reserve_left()) {
            return Err(reserve::as_error(refusal));
        }
        self.inner().crowd.admit_claim(&**self.store(), &self.settings().limits, &claim).await?;
        let deadline = Instant::now() + wait;
        if !matches!(claim.offer, Offer::Tags(_)) {
            // What the worker registered has to be read before it can wait; whoever finds work does not wait.
            let leases = self.claim_now(claim.clone()).await?;
            if !leases.is_empty() || self.is_over(deadline) {
                return Ok(leases);
            }
            claim.secrets = ids::secrets(claim.secrets.len());
        }
        let query = HeadQuery { namespace: claim.namespace.clone(), offered: self.offered(&claim).await? };
        let mut woken: Option<Waiter> = None;
        loop {
            let waiter = self.inner().after.waiters.register(query.clone(), self.settings().limits.offers_max)?;
            let mark = self.inner().after.notices.mark();
            let leases = self.claim_now(claim.clone()).await?;
            if let Some(woken) = woken.take() {
                woken.used();
            }
            if !leases.is_empty() || self.is_over(deadline) {
                return Ok(leases);
            }
            match self.wait_for_work(&waiter, &claim, mark, deadline).await? {
                Waited::Leased(leases) => return Ok(leases),
                // Kept until the next look is answered: if this caller goes away before that, the wake-up is passed on.
                Waited::Woken => woken = Some(waiter),
                Waited::Over if self.is_over(deadline) => return Ok(Vec::new()),
                Waited::Over => {}
            }
            claim.secrets = ids::secrets(claim.secrets.len());
        }
    }

    async fn wait_for_work(
        &self,
        waiter: &Waiter,
        claim: &Claim,
        mark: u64,
        deadline: Instant,
    ) -> Result<Waited, Error> {
        let until = self.settings().poll_every.map_or(deadline, |every| deadline.min(Instant::now() + every));
        let mut drained = Box::pin(self.drained(claim, mark));
        loop {
            let (reply, receiver) = oneshot::channel();
            let mut delivery = self.delivery(abandon(claim), receiver);
            waiter.park(Parked { claim: claim.clone(), by: self.by.clone(), reply });
            let waited = tokio::select! {
                answer = delivery.answer() => match self.found(claim, answer?).await? {
                    leases if leases.is_empty() => continue,
                    leases => return Ok(Waited::Leased(leases)),
                },
                woken = timeout_at(until, waiter.woken()) => if woken.is_ok() { Waited::Woken } else { Waited::Over },
                () = &mut drained => Waited::Over,
                () = self.until_stopping() => Waited::Over,
            };
            if waiter.unpark() {
                return Ok(waited);
            }
            // A batch has it, and is about to say what it found.
            let leases = leases(delivery.answer().await?)?;
            return Ok(if leases.is_empty() { waited } else { Waited::Leased(leases) });
        }
    }

    /// What a batch found for a claim that it took along. If that is nothing, the claim stands where it stood; but meanwhile it could
    /// not be woken, so it looks.
    async fn found(&self, claim: &Claim, replies: Vec<Result<Reply, Refusal>>) -> Result<Vec<Leased>, Error> {
        let found = leases(replies)?;
        if found.is_empty() { self.claim_now(claim.clone()).await } else { Ok(found) }
    }

    /// How many claims lie ready for a batch to take them along, for tests that have to know.
    #[cfg(feature = "testing")]
    pub fn parked(&self) -> usize {
        self.inner().after.waiters.parked()
    }

    /// Returns when the worker was told to claim no more.
    async fn drained(&self, claim: &Claim, mut mark: u64) {
        let worker = WorkerKey { namespace: claim.namespace.clone(), worker: claim.worker.clone() }.hint();
        loop {
            self.inner().after.notices.told(worker, mark).await;
            mark = self.inner().after.notices.mark();
            if self.worker(claim).await.is_ok_and(|worker| worker.is_some_and(|worker| worker.draining)) {
                return;
            }
        }
    }

    async fn claim_now(&self, claim: Claim) -> Result<Vec<Leased>, Error> {
        let abandon = abandon(&claim);
        let receiver = self.inner().intake.enqueue(vec![claim.into()], &self.by, abandon.clone())?;
        leases(self.delivery(abandon, receiver).answer().await?)
    }

    fn delivery(&self, abandon: Option<Namespace>, receiver: oneshot::Receiver<Replies>) -> Delivery {
        Delivery { intake: self.inner().intake.clone(), abandon, receiver }
    }

    /// The tags to wait by.
    async fn offered(&self, claim: &Claim) -> Result<Tags, Error> {
        let narrowed = match &claim.offer {
            Offer::Tags(tags) => return Ok(tags.clone()),
            Offer::Registered => None,
            Offer::Narrowed(tags) => Some(tags),
        };
        let registered = self.worker(claim).await?.map(|worker| worker.tags).unwrap_or_default();
        Ok(narrowed.map_or(registered.clone(), |tags| registered.intersection(tags)))
    }

    async fn worker(&self, claim: &Claim) -> Result<Option<Worker>, Error> {
        self.read_record::<Worker>(&claim.namespace, claim.worker.as_str()).await
    }
}

/// Where jobs are taken back from that nobody waits for any more. A request with an id can be asked again, and keeps them.
fn abandon(claim: &Claim) -> Option<Namespace> {
    claim.request_id.is_none().then(|| claim.namespace.clone())
}

/// None where no reply came, which is how a claim that was taken along hears that it found nothing.
fn leases(mut replies: Vec<Result<Reply, Refusal>>) -> Result<Vec<Leased>, Error> {
    match replies.pop() {
        Some(reply) => Claim::read(reply?).ok_or_else(mixed_up),
        None => Ok(Vec::new()),
    }
}
