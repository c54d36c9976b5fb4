//! One pass over a workload for several replays at once.
//!
//! Reading a trace costs as much as replaying a good part of it, so it is read once:
//! [`share`] splits a source into a [`Feeder`], which reads, and as many [`Shared`]
//! sources as there are replays, each on a thread of its own. Batches are shared, not
//! copied. A bounded queue between them keeps the fastest replay from running away and
//! memory small.
//!
//! Invariants: every shared source yields what the original would; one that is dropped
//! early (its replay failed) holds up nobody; an error of the original ends all of them
//! and is returned by [`Feeder::run`], so look there first.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flashwise_hint::Lba;
use flashwise_workload::{OpKind, Request, Source, WorkloadError};

/// Requests handed over together.
const BATCH: usize = 4096;

/// Batches that may wait for one replay.
const QUEUED: usize = 8;

type Batch = Arc<Vec<Request>>;

/// Reads the original.
pub struct Feeder<S> {
    source: S,
    to: Vec<SyncSender<Batch>>,
}

/// What one replay reads.
pub struct Shared {
    from: Receiver<Batch>,
    batch: Batch,
    at: usize,
}

/// Splits `source` for `n` replays.
pub fn share<S: Source>(source: S, n: usize) -> (Feeder<S>, Vec<Shared>) {
    let (to, from): (Vec<_>, Vec<_>) = (0..n).map(|_| sync_channel(QUEUED)).unzip();
    let shared = from.into_iter().map(|from| Shared { from, batch: Batch::default(), at: 0 });
    (Feeder { source, to }, shared.collect())
}

impl<S: Source> Feeder<S> {
    /// Reads to the end, or until nobody listens any more.
    pub fn run(mut self) -> Result<(), WorkloadError> {
        let blank = Request::new(OpKind::Flush, Lba(0), 0);
        while !self.to.is_empty() {
            let mut batch = vec![blank; BATCH];
            let n = self.source.next_batch(&mut batch)?;
            batch.truncate(n);
            if n == 0 {
                break;
            }
            let batch = Arc::new(batch);
            self.to.retain(|to| to.send(Arc::clone(&batch)).is_ok());
        }
        Ok(())
    }
}

impl Shared {
    /// Goes on to the next batch; false at the end.
    fn turn(&mut self) -> bool {
        match self.from.recv() {
            Ok(batch) => {
                (self.batch, self.at) = (batch, 0);
                true
            }
            Err(_) => false,
        }
    }
}

impl Source for Shared {
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        if self.at == self.batch.len() && !self.turn() {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(self.batch[self.at - 1]))
    }

    fn next_batch(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        let mut n = 0;
        while n < out.len() {
            if self.at == self.batch.len() && !self.turn() {
                break;
            }
            let more = (out.len() - n).min(self.batch.len() - self.at);
            out[n..n + more].copy_from_slice(&self.batch[self.at..self.at + more]);
            n += more;
            self.at += more;
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(n: u64) -> Vec<Request> {
        (0..n).map(|i| Request::new(OpKind::Read, Lba(i), 8)).collect()
    }

    /// Yields some requests, then an error.
    struct Broken(u64);

    impl Source for Broken {
        fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
            if self.0 == 0 {
                let missing = std::path::Path::new("/nonexistent/trace");
                return Err(flashwise_workload::open_trace(missing, &Default::default())
                    .map(|_| ())
                    .expect_err("there is no such file"));
            }
            self.0 -= 1;
            Ok(Some(Request::new(OpKind::Read, Lba(self.0), 8)))
        }
    }

    #[test]
    fn everybody_gets_everything_in_order_whatever_the_way_of_reading() {
        let n = 3 * BATCH as u64 + 5;
        let (feeder, shared) = share(requests(n).into_iter(), 3);
        let read: Vec<Vec<Request>> = std::thread::scope(|s| {
            let readers = shared.into_iter().enumerate().map(|(i, mut source)| {
                s.spawn(move || {
                    let mut all = vec![];
                    let mut some = [Request::new(OpKind::Flush, Lba(0), 0); 7];
                    loop {
                        if i == 0 {
                            match source.next_request().unwrap() {
                                Some(r) => all.push(r),
                                None => return all,
                            }
                        } else {
                            let n = source.next_batch(&mut some[..6 + i % 2]).unwrap();
                            all.extend_from_slice(&some[..n]);
                            if n < 6 {
                                return all;
                            }
                        }
                    }
                })
            });
            let readers: Vec<_> = readers.collect();
            feeder.run().unwrap();
            readers.into_iter().map(|r| r.join().unwrap()).collect()
        });
        assert!(read.iter().all(|all| *all == requests(n)));
    }

    #[test]
    fn one_that_gives_up_holds_up_nobody() {
        let n = 40 * BATCH as u64;
        let (feeder, mut shared) = share(requests(n).into_iter(), 2);
        drop(shared.remove(0));
        let mut last = shared.remove(0);
        std::thread::scope(|s| {
            let reader = s.spawn(move || {
                let mut count = 0u64;
                while last.next_request().unwrap().is_some() {
                    count += 1;
                }
                count
            });
            feeder.run().unwrap();
            assert_eq!(reader.join().unwrap(), n);
        });
        let (feeder, shared) = share(requests(n).into_iter(), 2);
        drop(shared);
        feeder.run().expect("nobody listens");
    }

    #[test]
    fn an_error_ends_all_and_is_returned() {
        let (feeder, shared) = share(Broken(10), 2);
        let readers = shared.into_iter().map(|mut source| {
            std::thread::spawn(move || while let Ok(Some(_)) = source.next_request() {})
        });
        let readers: Vec<_> = readers.collect();
        assert!(feeder.run().is_err());
        readers.into_iter().for_each(|r| r.join().unwrap());
    }
}
