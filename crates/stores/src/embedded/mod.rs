//! One SQLite file in the data folder.
