mod results;
mod said;
mod say;
mod ties;
