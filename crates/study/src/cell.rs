//! Cells: independent parts of a study, run side by side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Line, StudyError};

/// The work of a cell.
type Work = Box<dyn Fn() -> Result<Vec<Line>, StudyError> + Send + Sync>;

/// One independent part of a study.
pub struct Cell {
    /// What it is, for progress.
    pub name: String,
    work: Work,
}

impl Cell {
    /// A cell that does `work`, a pure function.
    pub fn new(
        name: impl Into<String>,
        work: impl Fn() -> Result<Vec<Line>, StudyError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Runs `cells` on `n_threads` threads. Lines come in the order of the cells, whoever ran
/// them; of several errors the one of the first cell is returned. `done` is told the name
/// of each cell that ended, from the thread that ran it.
pub fn run_cells(
    cells: &[Cell],
    n_threads: usize,
    done: impl Fn(&str) + Sync,
) -> Result<Vec<Line>, StudyError> {
    let next = AtomicUsize::new(0);
    let results: Vec<_> = cells.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..n_threads.clamp(1, cells.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(at) else { break };
                    let result = (cell.work)();
                    let mut place = results[at].lock().expect("held for this line only");
                    *place = Some(result);
                    drop(place);
                    done(&cell.name);
                }
            });
        }
    });
    let mut lines = vec![];
    for result in results {
        let result = result.into_inner().expect("no thread panicked");
        lines.extend(result.expect("every cell was run")?);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;

    fn cells(n: usize) -> Vec<Cell> {
        let lines = |i: usize| {
            if i == 70 {
                flashwise_ssd::DeviceConfig::open("no such drive", &[])?;
            }
            Ok(vec![Point::new("test", "none", "all", i as f64).into()])
        };
        (0..n).map(|i| Cell::new(i.to_string(), move || lines(i))).collect()
    }

    #[test]
    fn lines_come_in_the_order_of_cells_with_any_number_of_threads() {
        let alone = run_cells(&cells(50), 1, |_| ()).unwrap();
        assert_eq!(alone.len(), 50);
        assert_eq!(alone, run_cells(&cells(50), 7, |_| ()).unwrap());
        assert!(run_cells(&[], 3, |_| ()).unwrap().is_empty());
        assert!(run_cells(&cells(90), 2, |_| ()).is_err());
    }
}
