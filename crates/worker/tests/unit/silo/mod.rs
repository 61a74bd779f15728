mod calls;
mod config;
mod files;
mod lines;
mod report;
mod stop;
mod tags;
