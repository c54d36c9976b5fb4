//! The `flashwise` command.
fn main() {}
