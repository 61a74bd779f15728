mod bom;
mod features;
mod item;
mod trigger;
