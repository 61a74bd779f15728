mod definitions;
mod events;
mod files;
