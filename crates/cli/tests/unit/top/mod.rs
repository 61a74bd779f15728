mod draw;
mod look;
