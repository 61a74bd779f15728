mod array;
mod file;
mod logs;
mod translate;
