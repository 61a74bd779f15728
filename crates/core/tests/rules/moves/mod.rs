mod concurrency;
mod dependents;
mod pace;
mod parents;
