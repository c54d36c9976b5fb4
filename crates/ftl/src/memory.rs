//! Two favours asked of the machine, both without effect on results: to fetch a
//! table entry that will be needed a few requests from now, and to back large
//! tables with huge pages. Tables of a large drive lie far outside the caches;
//! asking ahead is worth a factor of two to three there, huge pages ten to twenty
//! percent. Where there is no such thing, nothing happens.
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

/// The same table, on huge pages where it is large and the system has them. Best
/// before it is first written.
pub(crate) fn on_huge_pages<T>(table: Vec<T>) -> Vec<T> {
    ask_for_huge_pages(&table);
    table
}

/// Tables below this gain nothing \[bytes\]: a huge page of x86-64.
const HUGE_PAGE_BYTES: usize = 2 << 20;

#[cfg(target_os = "linux")]
fn ask_for_huge_pages<T>(table: &[T]) {
    const PAGE_BYTES: usize = 4096;
    let bytes = size_of_val(table);
    if bytes < HUGE_PAGE_BYTES {
        return;
    }
    let start = table.as_ptr().addr().next_multiple_of(PAGE_BYTES);
    let end = (table.as_ptr().addr() + bytes) / PAGE_BYTES * PAGE_BYTES;
    let at = table.as_ptr().with_addr(start).cast_mut().cast();
    // SAFETY: the pages from `start` to `end` lie within the live slice, and the
    // advice changes how they are backed, not what they hold.
    let advised =
        unsafe { rustix::mm::madvise(at, end - start, rustix::mm::Advice::LinuxHugepage) };
    // A kernel without huge pages refuses; the table works all the same.
    let _ = advised;
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages<T>(_: &[T]) {}
