//! PostgreSQL 15 or newer, shared by any number of servers.
