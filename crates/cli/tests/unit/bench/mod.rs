mod ceiling;
mod dialect;
mod report;
