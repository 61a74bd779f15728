mod compat;
mod defaults;
