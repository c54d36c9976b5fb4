//! Write amplification of greedy collection in closed form.

/// Write amplification of greedy collection under uniform random writes of whole
/// mapping units, for a drive with `a` physical units (reserve excluded) for each
/// exported one: a / (a + W(-a e^-a)). Infinite where there is no spare space.
/// Source: Desnoyers, "Analytic Models of SSD Write Performance", ACM TOS 2014; Hu
/// et al., arXiv 1110.4245.
pub fn greedy_waf(a: f64) -> f64 {
    if a.is_nan() || a <= 1.0 {
        return f64::INFINITY;
    }
    a / (a + lambert_w(-a * (-a).exp()))
}

/// Lambert's W for -1/e <= x < 0, principal branch, by Halley's method.
fn lambert_w(x: f64) -> f64 {
    let e = std::f64::consts::E;
    // Near the branch point: the first terms of the series in sqrt(2 (e x + 1)).
    let mut w = if x < -0.3 { -1.0 + (2.0 * (1.0 + e * x)).max(0.0).sqrt() } else { x };
    for _ in 0..60 {
        let e_w = w.exp();
        let f = w * e_w - x;
        let step = f / (e_w * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        if !step.is_finite() || step == 0.0 {
            break;
        }
        w -= step;
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w_is_the_inverse_of_w_e_w() {
        for x in [-0.367_879, -0.35, -0.3, -0.29, -0.1, -1e-3, -1e-12] {
            let w = lambert_w(x);
            assert!((w * w.exp() - x).abs() < 1e-12 && (-1.0..0.0).contains(&w), "{x}: {w}");
        }
    }

    #[test]
    fn the_formula_is_the_published_one() {
        for (a, waf) in [(1.07, 7.817), (1.28, 2.481), (1.3, 2.364)] {
            assert!((greedy_waf(a) - waf).abs() < 1e-3, "{a}: {}", greedy_waf(a));
        }
        assert_eq!((greedy_waf(1.0), greedy_waf(0.5)), (f64::INFINITY, f64::INFINITY));
        assert!((greedy_waf(20.0) - 1.0).abs() < 1e-6);
        // It falls with more spare space, down to the smallest.
        let all = [1.0001, 1.001, 1.01, 1.1, 2.0, 5.0].map(greedy_waf);
        assert!(all.windows(2).all(|w| w[0] > w[1] && w[0].is_finite()), "{all:?}");
    }
}
