mod draw;
mod file;
mod layout;
mod show;
mod watch;
