//! What a policy is worth, in words: a row against the first row of the same workload.
//!
//! Speed is compared by mean latency, which says something also where requests arrive at
//! fixed times; and by throughput, where that differs: mixed jobs that wait for flushes or
//! for each other can be slower though no write is.

use crate::row::Row;

/// Ratios this near to 1 are the same.
const SAME: f64 = 0.01;

/// Differences of write amplification below this are none.
const SAME_WAF: f64 = 0.005;

/// One line such as "relation=hints against none: reads 2.1x faster, writes the same,
/// write amplification +0.01".
pub fn in_words(first: &Row, other: &Row) -> String {
    let parts = [
        speed("reads", first.read_mean_us, other.read_mean_us),
        speed("writes", first.write_mean_us, other.write_mean_us),
        throughput(first.host_mib_s, other.host_mib_s),
        amplification(first.waf, other.waf),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let what = if parts.is_empty() { "nothing to compare".to_owned() } else { parts.join(", ") };
    format!("{} against {}: {what}", other.policy, first.policy)
}

fn speed(what: &str, first_us: Option<f64>, other_us: Option<f64>) -> Option<String> {
    let ratio = first_us? / other_us?;
    if !ratio.is_finite() || ratio <= 0.0 {
        return None;
    }
    Some(match ratio {
        r if (r - 1.0).abs() < SAME => format!("{what} the same"),
        r if r > 1.0 => format!("{what} {} faster", times(r)),
        r => format!("{what} {} slower", times(1.0 / r)),
    })
}

fn throughput(first: f64, other: f64) -> Option<String> {
    let percent = (other / first - 1.0) * 100.0;
    let differs = percent.is_finite() && percent.abs() >= SAME * 100.0;
    differs.then(|| format!("throughput {percent:+.0} %"))
}

fn times(ratio: f64) -> String {
    if ratio < 1.995 {
        return format!("{:.0} %", (ratio - 1.0) * 100.0);
    }
    format!("{ratio:.1}x")
}

fn amplification(first: Option<f64>, other: Option<f64>) -> Option<String> {
    let difference = other? - first?;
    Some(if difference.abs() < SAME_WAF {
        "write amplification the same".to_owned()
    } else {
        format!("write amplification {difference:+.2}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, read: Option<f64>, write: Option<f64>, waf: Option<f64>) -> Row {
        let policy = policy.to_owned();
        Row { policy, read_mean_us: read, write_mean_us: write, waf, ..Row::default() }
    }

    #[test]
    fn it_says_what_changed_and_what_did_not() {
        let none = row("none", Some(210.0), Some(50.0), Some(1.2));
        let hints = row("relation=hints", Some(100.0), Some(50.2), Some(1.21));
        let line = "relation=hints against none: reads 2.1x faster, writes the same, \
                    write amplification +0.01";
        assert_eq!(in_words(&none, &hints), line);
        let back = "none against relation=hints: reads 2.1x slower, writes the same, \
                    write amplification -0.01";
        assert_eq!(in_words(&hints, &none), back);
        let little = row("a", Some(200.0), Some(70.0), Some(1.2001));
        let line = "a against none: reads 5 % faster, writes 40 % slower, \
                    write amplification the same";
        assert_eq!(in_words(&none, &little), line);
    }

    #[test]
    fn throughput_is_named_where_it_differs() {
        let of = |policy: &str, host_mib_s: f64| Row {
            host_mib_s,
            ..row(policy, Some(100.0), Some(50.0), Some(1.0))
        };
        let line = "b against a: reads the same, writes the same, throughput -14 %, \
                    write amplification the same";
        assert_eq!(in_words(&of("a", 100.0), &of("b", 86.2)), line);
        assert!(!in_words(&of("a", 100.0), &of("b", 100.4)).contains("throughput"));
    }

    #[test]
    fn what_was_not_done_is_not_compared() {
        let reads = row("a", Some(100.0), None, None);
        assert_eq!(
            in_words(&reads, &row("b", Some(50.0), None, None)),
            "b against a: reads 2.0x faster"
        );
        let none = row("b", None, None, None);
        assert_eq!(in_words(&reads, &none), "b against a: nothing to compare");
    }
}
