mod docs;
mod jobs;
mod log_line;
mod log_search;
mod why;
