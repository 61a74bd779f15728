//! Filled with the test of query plans.
