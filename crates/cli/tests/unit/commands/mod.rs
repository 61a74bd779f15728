mod logs;
mod wait;
mod workflow;
