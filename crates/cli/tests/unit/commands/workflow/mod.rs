mod draw;
mod input;
mod layout;
mod show;
mod watch;
