//! The derived rates of a preset against runs: no run is faster, and one that is made
//! for it comes near. Prints what it found (`-- --nocapture`).
#![allow(clippy::print_stdout, reason = "figures for the documentation")]

mod common;

use common::{drive, fill, random, run, sequential, units};
use flashwise_design::Derived;
use flashwise_lab::precondition;
use flashwise_workload::OpKind;

fn bound(preset: &str, key: &str) -> (&'static str, f64) {
    let derived = Derived::of(drive(preset, &[]).config()).expect("a drive");
    derived.rates.iter().find(|r| r.key == key).expect("a rate").smallest()
}

#[track_caller]
fn near(preset: &str, key: &str, found: f64, least: f64) {
    let (name, bound) = bound(preset, key);
    let part = found / bound;
    println!("{preset} {key}: {found:.0} of {bound:.0}, bounded by {name} ({part:.3})");
    assert!((least..=1.01).contains(&part), "{preset} {key}: {found} of {bound}");
}

#[test]
fn sequential_reads_reach_their_bound() {
    for preset in ["fast24", "tlc-slc", "bench-16g", "mqsim"] {
        let mut ssd = drive(preset, &[]);
        let n_units = units(&ssd).min(200_000);
        fill(&mut ssd, n_units);
        let source = sequential(&ssd, OpKind::Read, 256, n_units * 8 / 256);
        let row = run(&mut ssd, source, 128);
        near(preset, "sequential_read_mib_s", row.read_mib_s, 0.9);
    }
}

#[test]
fn sequential_writes_of_a_full_drive_reach_their_bound() {
    for preset in ["tlc-slc", "bench-16g", "mqsim"] {
        let mut ssd = drive(preset, &["ftl.gc_high_blocks=3"]);
        let n_units = units(&ssd);
        fill(&mut ssd, n_units);
        fill(&mut ssd, n_units / 2);
        let source = sequential(&ssd, OpKind::Write, 256, 12_000);
        let row = run(&mut ssd, source, 128);
        near(preset, "sequential_write_mib_s", row.write_mib_s, 0.9);
    }
}

#[test]
fn random_reads_reach_their_bound() {
    for preset in ["fast24", "tlc-slc", "bench-16g", "mqsim"] {
        let mut ssd = drive(preset, &[]);
        let n_units = units(&ssd);
        fill(&mut ssd, n_units);
        let source = random(&ssd, 100, 200_000, 3);
        let row = run(&mut ssd, source, 512);
        near(preset, "random_4k_read_iops", row.iops, 0.9);
    }
}

#[test]
fn random_writes_at_steady_state_stay_below_their_bound() {
    for preset in ["tlc-slc", "mqsim"] {
        let mut ssd = drive(preset, &["precondition.occupancy=1.0", "ftl.gc_high_blocks=3"]);
        precondition(&mut ssd, 1, |_| ());
        let source = random(&ssd, 0, 300_000, 3);
        let row = run(&mut ssd, source, 128);
        // The bound is for the write amplification of the formula, which the run misses by
        // a few percent.
        let derived = Derived::of(ssd.config()).expect("a preset that can be built");
        let formula = derived.get("random_4k_waf").expect("greedy has a formula");
        let found = row.iops * row.waf.expect("writes") / formula;
        near(preset, "random_4k_write_iops", found, 0.5);
    }
}
