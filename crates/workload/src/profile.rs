//! The shape of a workload: how long its requests are, how sequential, how bursty, and
//! how much of what it touches is written.
//!
//! A [`Profiled`] source passes requests on and looks at each, so that one pass over a
//! trace serves the summary and the profile. Cost: some ten nanoseconds per request
//! and a range per disjoint extent that is written.

use crate::{Extents, OpKind, Request, Source, WorkloadError};

/// Requests of the same kind that a sequential one may follow, assumed: several
/// streams at once still count as sequential, chance does not.
const N_STREAMS: usize = 32;

/// Size classes: up to 512 bytes, up to 1 KiB, and so on in powers of two.
const N_SIZES: usize = 33;

/// The granularity of extents that are written \[sectors\]: 4 KiB.
const UNIT_SECTORS: u64 = 8;

/// Requests whose length is at most `bytes_max` and above the class before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeClass {
    /// Largest length in this class \[bytes\].
    pub bytes_max: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Write zeroes.
    pub write_zeroes: u64,
}

/// What a workload looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Requests by length; the first class is up to 512 bytes.
    sizes: [SizeClass; N_SIZES],
    /// Reads that begin where one of the 32 reads before ended.
    pub sequential_reads: u64,
    /// Writes that begin where one of the 32 writes before ended.
    pub sequential_writes: u64,
    /// Writes with force unit access.
    pub fua_writes: u64,
    /// Most requests that arrive in one second, counted from the first request.
    pub busiest_second_requests: u64,
    /// Every address that is written, in units of 4 KiB.
    pub written: Extents,
    read_ends: Ends,
    write_ends: Ends,
    /// The second under way, and its requests.
    second: (u64, u64),
}

/// Where the last requests of a kind ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ends {
    ends: [u64; N_STREAMS],
    next: usize,
}

impl Default for Profile {
    fn default() -> Self {
        let mut sizes = [SizeClass::default(); N_SIZES];
        for (i, class) in sizes.iter_mut().enumerate() {
            class.bytes_max = 512 << i;
        }
        let ends = Ends { ends: [u64::MAX; N_STREAMS], next: 0 };
        Self {
            sizes,
            sequential_reads: 0,
            sequential_writes: 0,
            fua_writes: 0,
            busiest_second_requests: 0,
            written: Extents::new(),
            read_ends: ends.clone(),
            write_ends: ends,
            second: (0, 0),
        }
    }
}

impl Profile {
    /// Counts one request. Requests come in order of time.
    pub fn add(&mut self, request: &Request) {
        self.add_time(request.at_ns);
        if request.op == OpKind::Flush {
            return; // without a length
        }
        // The smallest power of two that holds the length.
        let class = 32 - request.sectors.saturating_sub(1).leading_zeros();
        let class = &mut self.sizes[class as usize];
        let (start, end) = (request.lba.0, request.end());
        match request.op {
            OpKind::Read => {
                class.reads += 1;
                self.sequential_reads += u64::from(self.read_ends.follow(start, end));
            }
            OpKind::Write => {
                class.writes += 1;
                self.fua_writes += u64::from(request.fua);
                self.sequential_writes += u64::from(self.write_ends.follow(start, end));
                let start = start - start % UNIT_SECTORS;
                self.written.insert(start, end.next_multiple_of(UNIT_SECTORS));
            }
            OpKind::Trim => class.trims += 1,
            OpKind::WriteZeroes => class.write_zeroes += 1,
            OpKind::Flush => {}
        }
    }

    /// Requests by length, without the empty classes at both ends.
    pub fn sizes(&self) -> &[SizeClass] {
        let used =
            |class: &SizeClass| class.reads + class.writes + class.trims + class.write_zeroes > 0;
        let first = self.sizes.iter().position(used).unwrap_or(0);
        let end = self.sizes.iter().rposition(used).map_or(first, |last| last + 1);
        &self.sizes[first..end]
    }

    fn add_time(&mut self, at_ns: u64) {
        let second = at_ns / 1_000_000_000;
        if second != self.second.0 {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        self.busiest_second_requests = self.busiest_second_requests.max(self.second.1);
    }
}

impl Ends {
    /// Whether a request begins where one of the last ended; its end takes that place.
    fn follow(&mut self, start: u64, end: u64) -> bool {
        if let Some(slot) = self.ends.iter_mut().find(|slot| **slot == start) {
            *slot = end;
            return true;
        }
        self.ends[self.next] = end;
        self.next = (self.next + 1) % N_STREAMS;
        false
    }
}

/// A source that is looked at while it is read.
#[derive(Debug)]
pub struct Profiled<S> {
    inner: S,
    profile: Profile,
}

impl<S: Source> Profiled<S> {
    /// Looks at every request of `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, profile: Profile::default() }
    }

    /// The source and the profile of what it yielded.
    pub fn into_parts(mut self) -> (S, Profile) {
        self.profile.written.settle();
        (self.inner, self.profile)
    }
}

impl<S: Source> Source for Profiled<S> {
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        let next = self.inner.next_request()?;
        if let Some(request) = &next {
            self.profile.add(request);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use flashwise_hint::Lba;

    use super::*;

    fn profile(list: &[(u64, OpKind, u64, u32)]) -> Profile {
        let requests = list.iter().map(|&(at_ns, op, lba, sectors)| Request {
            at_ns,
            ..Request::new(op, Lba(lba), sectors)
        });
        let mut source = Profiled::new(requests.collect::<Vec<_>>().into_iter());
        while source.next_request().unwrap().is_some() {}
        source.into_parts().1
    }

    #[test]
    fn lengths_fall_into_the_class_that_just_holds_them() {
        for (sectors, bytes_max) in
            [(1, 512), (2, 1024), (3, 2048), (8, 4096), (9, 8192), (u32::MAX, 1 << 41)]
        {
            let found = profile(&[(0, OpKind::Read, 0, sectors)]);
            let [class] = found.sizes() else { panic!("{:?}", found.sizes()) };
            assert_eq!((class.bytes_max, class.reads), (bytes_max, 1), "{sectors}");
        }
        let mixed = profile(&[
            (0, OpKind::Write, 0, 8),
            (0, OpKind::Trim, 0, 32),
            (0, OpKind::WriteZeroes, 0, 64),
            (0, OpKind::Flush, 0, 0),
            (0, OpKind::Read, 0, 8),
        ]);
        let counts = |class: &SizeClass| {
            (class.bytes_max, class.reads, class.writes, class.trims + 10 * class.write_zeroes)
        };
        let classes: Vec<_> = mixed.sizes().iter().map(counts).collect();
        assert_eq!(
            classes,
            [(4096, 1, 1, 0), (8192, 0, 0, 0), (16384, 0, 0, 1), (32768, 0, 0, 10)]
        );
        assert!(profile(&[(0, OpKind::Flush, 0, 0)]).sizes().is_empty());
    }

    #[test]
    fn interleaved_streams_are_sequential_and_scattered_requests_are_not() {
        let two = (0..100).map(|i| (0, OpKind::Read, i % 2 * 10_000 + i / 2 * 8, 8));
        assert_eq!(profile(&two.collect::<Vec<_>>()).sequential_reads, 98);
        let scattered = (0..100).map(|i| (0, OpKind::Write, i * 7919 % 1000 * 8, 8));
        let found = profile(&scattered.collect::<Vec<_>>());
        assert_eq!((found.sequential_reads, found.sequential_writes), (0, 0));
        // A read does not follow a write.
        let kinds = [(0, OpKind::Write, 0, 8), (0, OpKind::Read, 8, 8)];
        assert_eq!(profile(&kinds).sequential_reads, 0);
    }

    #[test]
    fn the_busiest_second_and_what_is_written_are_kept() {
        let second = 1_000_000_000;
        let found = profile(&[
            (0, OpKind::Write, 3, 2),
            (second - 1, OpKind::Write, 4, 8),
            (second, OpKind::Read, 100, 1),
            (5 * second, OpKind::Write, 4, 8),
        ]);
        assert_eq!(found.busiest_second_requests, 2);
        assert_eq!(found.written.total_sectors(), 16);
    }
}
