//! Experiments as pure functions: replay and preconditioning.
