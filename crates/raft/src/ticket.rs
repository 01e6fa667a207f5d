//! Proposals on their way.
//!
//! A ticket is resolved by the first that knows: the library, when the entry was applied or
//! refused; or the replica, when it loses leadership and the fate of everything in flight becomes
//! unknown.

use crate::ProposeError;
use crate::consensus::{Types, to_position};
use meridian_base::{LogPosition, NodeId};
use openraft::errors::ClientWriteError;
use openraft::raft::ClientWriteResult;
use openraft::raft::responder::Responder;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type Outcome = Result<LogPosition, ProposeError>;

/// A proposal on its way. Resolves when the entry has been applied *here*. Dropping it does not
/// take the proposal back.
#[must_use = "the proposal's fate is known only when the ticket resolves"]
pub struct ProposeTicket(Arc<Cell>);

#[derive(Default)]
pub(crate) struct Cell(Mutex<(Option<Outcome>, Option<Waker>)>);

impl Cell {
    /// The first outcome stands.
    fn resolve(&self, outcome: Outcome) {
        let mut cell = self.0.lock();
        if cell.0.is_none() {
            cell.0 = Some(outcome);
            if let Some(waker) = cell.1.take() {
                drop(cell);
                waker.wake();
            }
        }
    }
    fn is_resolved(&self) -> bool {
        self.0.lock().0.is_some()
    }
}

impl Future for ProposeTicket {
    type Output = Outcome;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut cell = self.0.0.lock();
        match &cell.0 {
            Some(outcome) => Poll::Ready(outcome.clone()),
            None => {
                cell.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// What the library reports to. It is generic over what is reported because the library asks for
/// that; here it is always the result of a write.
pub(crate) struct Reply<T> {
    cell: Arc<Cell>,
    _result: PhantomData<fn(T)>,
}

impl<T: Send + 'static> Responder<Types, T> for Reply<T> {
    fn on_complete(self, result: T) {
        let result: &dyn Any = &result;
        let result = result.downcast_ref::<ClientWriteResult<Types>>().expect("the result of a write");
        self.cell.resolve(match result {
            Ok(response) => Ok(to_position(&response.log_id)),
            Err(ClientWriteError::ForwardToLeader(forward)) => {
                Err(ProposeError::NotLeader { hint: forward.leader_id.map(NodeId) })
            }
            Err(_) => Err(ProposeError::Dropped),
        });
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.cell.resolve(Err(ProposeError::Stopped));
    }
}

/// All tickets of a replica that may be unresolved.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<VecDeque<Arc<Cell>>>);

impl InFlight {
    /// A new ticket, and what the library resolves it by.
    pub(crate) fn issue<T>(&self) -> (ProposeTicket, Reply<T>) {
        let cell = Arc::new(Cell::default());
        let mut queue = self.0.lock();
        // Entries are applied in order, so resolved tickets gather at the front.
        while queue.front().is_some_and(|c| c.is_resolved()) {
            queue.pop_front();
        }
        queue.push_back(cell.clone());
        (ProposeTicket(cell.clone()), Reply { cell, _result: PhantomData })
    }

    /// Resolves everything that is still open.
    pub(crate) fn fail_all(&self, error: &ProposeError) {
        let cells = std::mem::take(&mut *self.0.lock());
        for cell in cells {
            cell.resolve(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    /// What is known of a proposal is forgotten, and what is open is told of everything that ends
    /// it.
    #[test]
    fn only_what_is_resolved_is_forgotten() {
        let in_flight = InFlight::default();
        let mut open = Vec::new();
        for n in 0..10 {
            let (ticket, reply) = in_flight.issue::<ClientWriteResult<Types>>();
            if n < 5 {
                // The library ends without an answer.
                drop(reply);
                assert_eq!(ticket.now_or_never(), Some(Err(ProposeError::Stopped)));
                assert_eq!(in_flight.0.lock().len(), 1, "those before it are known");
            } else {
                open.push((ticket, reply));
            }
        }
        assert_eq!(in_flight.0.lock().len(), 5);
        in_flight.fail_all(&ProposeError::Dropped);
        for (ticket, _reply) in open {
            assert_eq!(ticket.now_or_never(), Some(Err(ProposeError::Dropped)));
        }
    }
}
