//! What has been heard of a source that cannot be asked what changed.

use std::collections::BTreeMap;

use crate::{DirtySet, News, RegionId, Sequence, Watermarks};

/// Notifications of commits, each with the sequence that it speaks of.
///
/// They may arrive late and in any order. The checkpoint must not pass a sequence whose notification is still on its way:
/// the windows that it will name would then be taken for clean. So the source is taken to be where all notifications up to
/// there have arrived ([`Notifications::arrived`]), however much further it is.
///
/// ```
/// use windrow_state::{DirtySet, Notifications, Watermarks};
///
/// let mut heard = Notifications::since(Watermarks::of(0, 4));
/// heard.hear(0, 6, &DirtySet::default(), true);
/// assert_eq!(heard.arrived(), Watermarks::of(0, 4), "the fifth has not arrived");
/// heard.hear(0, 5, &DirtySet::default(), true);
/// assert_eq!(heard.arrived(), Watermarks::of(0, 6));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Notifications {
    /// What was known when listening began.
    base: Watermarks,
    heard: BTreeMap<(RegionId, Sequence), Heard>,
    #[cfg(test)]
    pub(crate) fault: Option<crate::flow::Fault>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Heard {
    touched: DirtySet,
    appends_only: bool,
}

impl Notifications {
    /// Listens for what comes after `base`.
    #[must_use]
    pub fn since(base: Watermarks) -> Self {
        Self { base, ..Self::default() }
    }

    /// A notification has arrived: the commit `sequence` of `region` touched these windows. Once more is no news.
    pub fn hear(&mut self, region: RegionId, sequence: Sequence, touched: &DirtySet, appends_only: bool) {
        if sequence > self.base.get(region) {
            self.heard.insert((region, sequence), Heard { touched: touched.clone(), appends_only });
        }
    }

    /// What is known of the changes after `checkpoint`, up to where all notifications have arrived; `None` where the checkpoint
    /// is older than what was listened to.
    #[must_use]
    pub fn news(&self, checkpoint: &Watermarks) -> Option<News> {
        self.news_upto(checkpoint, &self.arrived())
    }

    /// What is known of the changes after `checkpoint` up to `upto`; `None` where a notification of them has not arrived, or
    /// came before anyone listened.
    #[must_use]
    pub fn news_upto(&self, checkpoint: &Watermarks, upto: &Watermarks) -> Option<News> {
        if !self.arrived().covers(upto) || !checkpoint.covers(&self.base) {
            return None;
        }
        let mut touched = DirtySet::default();
        let mut appends_only = true;
        for (&(region, sequence), heard) in &self.heard {
            if sequence > checkpoint.get(region) && sequence <= upto.get(region) {
                touched.join(&heard.touched);
                appends_only &= heard.appends_only;
            }
        }
        Some(News { now: upto.clone(), touched, appends_only })
    }

    /// Where the source is as far as is known: up to there all notifications have arrived.
    #[must_use]
    pub fn arrived(&self) -> Watermarks {
        let mut arrived: BTreeMap<RegionId, Sequence> = self.base.iter().collect();
        for &(region, sequence) in self.heard.keys() {
            let upto = arrived.entry(region).or_insert(0);
            let next = *upto + 1 == sequence;
            #[cfg(test)]
            let next = next || self.fault == Some(crate::flow::Fault::IgnoreSequenceOfNotification);
            if next {
                *upto = sequence;
            }
        }
        arrived.into_iter().filter(|&(_, sequence)| sequence > 0).collect()
    }

    /// Forgets what is not after `checkpoint`.
    pub fn forget(&mut self, checkpoint: &Watermarks) {
        // What came before anyone listened stays unknown, if the checkpoint is older.
        if checkpoint.covers(&self.base) && self.arrived().covers(checkpoint) {
            self.base = checkpoint.clone();
            self.heard.retain(|(region, sequence), _| *sequence > checkpoint.get(*region));
        }
    }
}
