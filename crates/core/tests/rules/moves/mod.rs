mod concurrency;
mod pace;
mod parents;
