//! What to do: trace readers and generators.
