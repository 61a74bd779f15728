mod wait;
mod workflow;
