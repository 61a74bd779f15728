mod reader;
mod turns;
