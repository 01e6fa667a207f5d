//! How a replica asks its primary: under its lock, over the applied versions of the same log
//! position, at one time.

use crate::replica::pod::slots::SlotSet;
use crate::replica::term::Term;
use crate::replica::term_rounds::TermRounds;
use crate::replica::versions::StoreVersions;
use crate::replica::{Core, Replica};
use meridian_base::Result;
use meridian_commit::Participant;
use meridian_region::{Engine, Moment, Primary};

/// What a term has to decide with.
pub(crate) struct Deciders<'a> {
    pub engine: &'a mut Engine,
    pub participant: &'a mut Participant,
    pub rounds: &'a mut TermRounds,
}

impl Replica {
    /// Asks the primary of this term about a transaction.
    ///
    /// # Errors
    ///
    /// `NotPrimary` outside of a term; an error of the store, over which no answer counts.
    pub(crate) fn ask<A>(&self, core: &mut Core, question: impl FnOnce(&mut dyn Primary, &Moment<'_>) -> A) -> Result<A> {
        self.ask_term(core, |term, now| question(term.engine, now))
    }

    /// Asks about more than [`Primary`] answers: escrow shares and their rounds, and slices that
    /// the participant keeps.
    pub(crate) fn ask_term<A>(&self, core: &mut Core, question: impl FnOnce(Deciders<'_>, &Moment<'_>) -> A) -> Result<A> {
        let physical_micros = self.physical();
        let versions = StoreVersions::new(&self.store, self.common.rules);
        let (state, Term { engine, participant, rounds, clock, .. }) = self.certifying(core)?;
        let now = Moment { state, versions: &versions, clock: clock.as_ref(), physical_micros };
        let answer = question(Deciders { engine, participant, rounds }, &now);
        match versions.failure.into_inner() {
            Some(e) => Err(e),
            None => Ok(answer),
        }
    }

    /// The slots of a step, if this host of a pod does not have all of them.
    pub(crate) fn lacking(&self, core: &mut Core, slots: Option<SlotSet>) -> Result<Option<SlotSet>> {
        let (_, term) = self.certifying(core)?;
        Ok(slots.filter(|slots| term.lacks(slots)))
    }
}
