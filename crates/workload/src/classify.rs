//! Data classes of a host that gives none: by address.
//!
//! Where a journal lies on a device is known from its file system, so a write that falls
//! wholly into that range carries journal data. A [`Classified`] source passes requests
//! on and sets the class of such writes. It looks at the addresses of its source, so it
//! comes before a [`Fit`](crate::Fit), which may move them.
//!
//! Invariants: only writes change, and only those that carry no class; nothing but the
//! class changes. Cost: a binary search over the ranges per write; none without ranges.

use std::ops::Range;

use flashwise_hint::DataClass;

use crate::{OpKind, Request, Source, WorkloadError};

/// Which class the sectors of a device carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassMap {
    /// In order, apart from each other; neighbours of one class are joined \[sectors\].
    ranges: Vec<(Range<u64>, DataClass)>,
}

impl ClassMap {
    /// A map of ranges of sectors that all carry `class`; they may overlap.
    pub fn new(class: DataClass, ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|r| !r.is_empty()).collect();
        sorted.sort_unstable_by_key(|r| r.start);
        let mut joined: Vec<(Range<u64>, DataClass)> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match joined.last_mut() {
                Some((last, _)) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push((range, class)),
            }
        }
        Self { ranges: joined }
    }

    /// Whether no sector has a class.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The class of a request of these sectors: that of the range it falls wholly into.
    pub fn class_of(&self, start: u64, end: u64) -> DataClass {
        let after = self.ranges.partition_point(|(range, _)| range.start <= start);
        match after.checked_sub(1).map(|i| &self.ranges[i]) {
            Some((range, class)) if end <= range.end => *class,
            _ => DataClass::Unspecified,
        }
    }

    fn apply(&self, request: &mut Request) {
        let blank = request.hint.class == DataClass::Unspecified;
        if request.op == OpKind::Write && blank {
            request.hint.class = self.class_of(request.lba.0, request.end());
        }
    }
}

/// A source whose writes carry the classes of a [`ClassMap`].
#[derive(Clone, Debug)]
pub struct Classified<S> {
    source: S,
    classes: ClassMap,
}

impl<S> Classified<S> {
    /// Passes on the requests of `source`.
    pub fn new(source: S, classes: ClassMap) -> Self {
        Self { source, classes }
    }
}

impl<S: Source> Source for Classified<S> {
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        let mut next = self.source.next_request()?;
        if let Some(request) = &mut next {
            self.classes.apply(request);
        }
        Ok(next)
    }

    fn next_batch(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        let n = self.source.next_batch(out)?;
        if !self.classes.is_empty() {
            out[..n].iter_mut().for_each(|request| self.classes.apply(request));
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_hint::Lba;

    #[test]
    fn writes_wholly_inside_get_the_class_and_nothing_else_changes() {
        let map = ClassMap::new(DataClass::Journal, [100..110, 110..120, 115..118, 200..200]);
        let journal = DataClass::Journal;
        let of = |start, end| map.class_of(start, end) == journal;
        assert!(of(100, 120) && of(105, 115) && of(119, 120));
        assert!(!of(99, 101) && !of(119, 121) && !of(120, 121) && !of(0, 1) && !of(200, 201));

        let hot = Request {
            hint: flashwise_hint::WriteHint { class: DataClass::Hot, ..Default::default() },
            ..Request::new(OpKind::Write, Lba(104), 8)
        };
        let list = vec![
            Request::new(OpKind::Write, Lba(104), 8),
            Request::new(OpKind::Read, Lba(104), 8),
            Request::new(OpKind::Trim, Lba(104), 8),
            hot,
            Request::new(OpKind::Write, Lba(116), 8),
        ];
        let mut one = Classified::new(list.clone().into_iter(), map.clone());
        let singly: Vec<_> = std::iter::from_fn(|| one.next_request().unwrap()).collect();
        let mut batch = vec![list[1]; 8];
        let n = Classified::new(list.clone().into_iter(), map).next_batch(&mut batch).unwrap();
        assert_eq!(singly, batch[..n]);
        let mut expected = list;
        expected[0].hint.class = journal;
        assert_eq!(singly, expected);
    }
}
