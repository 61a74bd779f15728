mod docs;
mod jobs;
mod log_search;
mod why;
