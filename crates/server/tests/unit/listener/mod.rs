mod bodies;
mod head;
mod permits;
