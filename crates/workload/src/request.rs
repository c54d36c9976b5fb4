//! One block request and where requests come from.
//!
//! `Request` is `Copy` and 48 bytes, so that batches of them live in the first-level
//! cache. A source is pulled, one request at a time: it never runs ahead of its
//! consumer and needs no thread.
//!
//! Invariant: a source that returned an error or `None` returns `None` from then on.

use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};

use crate::WorkloadError;

/// First sector address that no request may reach beyond: the largest for which the
/// byte offset ([`Lba::byte_offset`]) still fits 64 bits \[512-byte sectors\].
pub const MAX_SECTORS: u64 = u64::MAX / SECTOR_BYTES;

/// What a request asks the drive to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Tell the drive that sectors are no longer needed (TRIM, UNMAP, deallocate).
    Trim,
    /// Make everything written so far durable. Covers the whole drive: the address
    /// and length of the request are 0.
    Flush,
    /// Make sectors read as zeroes without sending data.
    WriteZeroes,
}

/// One block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Arrival \[ns since the first request of its source\]; 0 throughout for
    /// closed-loop generators, which issue the next request when one completes.
    pub at_ns: u64,
    /// What to do.
    pub op: OpKind,
    /// First sector.
    pub lba: Lba,
    /// Length \[512-byte sectors\]; 0 for a flush and for nothing else.
    pub sectors: u32,
    /// Force unit access: the write is durable before it completes.
    pub fua: bool,
    /// What the host says about the write.
    pub hint: WriteHint,
}

impl Request {
    /// A request at time 0 without hint or force unit access.
    pub const fn new(op: OpKind, lba: Lba, sectors: u32) -> Self {
        Self { at_ns: 0, op, lba, sectors, fua: false, hint: WriteHint::NONE }
    }

    /// The sector after the last one \[512-byte sectors\], saturating.
    pub const fn end(&self) -> u64 {
        self.lba.0.saturating_add(self.sectors as u64)
    }

    /// Length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.sectors as u64 * SECTOR_BYTES
    }
}

/// Something that yields requests in order of arrival.
pub trait Source {
    /// The next request, or `None` at the end.
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError>;

    /// Puts the next requests into `out`; how many. Fewer than asked for only at
    /// the end. After an error what came before it in the batch is lost, so only
    /// callers that give up on errors use this.
    fn next_batch(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        for (n, slot) in out.iter_mut().enumerate() {
            match self.next_request()? {
                Some(request) => *slot = request,
                None => return Ok(n),
            }
        }
        Ok(out.len())
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        (**self).next_request()
    }

    fn next_batch(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        (**self).next_batch(out)
    }
}

impl Source for std::vec::IntoIter<Request> {
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        Ok(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_stays_small_and_knows_its_end() {
        assert!(size_of::<Request>() <= 48);
        let request = Request::new(OpKind::Write, Lba(8), 16);
        assert_eq!((request.end(), request.bytes()), (24, 8192));
        assert_eq!(Request::new(OpKind::Read, Lba(u64::MAX), 1).end(), u64::MAX);
    }

    #[test]
    fn a_list_is_a_source_also_behind_a_box() {
        let list = vec![Request::new(OpKind::Flush, Lba(0), 0)];
        let mut source: Box<dyn Source> = Box::new(list.clone().into_iter());
        assert_eq!(source.next_request().unwrap(), Some(list[0]));
        assert_eq!(source.next_request().unwrap(), None);
    }
}
