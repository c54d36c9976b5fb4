//! Asks the processor to fetch a table entry that will be needed a few requests
//! from now. Tables of a large drive lie far outside the caches; asking ahead is
//! worth a factor of two to three there. Where the processor has no such
//! instruction, nothing happens.
#![allow(unsafe_code)]

/// Requests the cache line of `table[index]`; an index outside is ignored.
#[inline(always)]
pub(crate) fn prefetch<T>(table: &[T], index: usize) {
    if let Some(entry) = table.get(index) {
        let at = std::ptr::from_ref(entry);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `at` points into a live slice, and a prefetch reads nothing.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(at.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}
