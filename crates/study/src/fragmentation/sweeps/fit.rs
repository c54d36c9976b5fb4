//! A straight line through points by least squares.

/// Slope of the line through `points` (x, y) that leaves the least squares in y: what y
/// grows by with each x. Needs two different x.
pub(super) fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    sxy / sxx
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn slopes_are_those_worked_out_by_hand() {
        assert!((slope(&[(1.0, 5.0), (3.0, 11.0), (7.0, 23.0)]) - 3.0).abs() < 1e-12);
        // Means 2 and 2: (-1 x -1 + 0 x 1 + 1 x 0) / 2.
        assert!((slope(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]) - 0.5).abs() < 1e-12);
    }
}
