mod ceiling;
mod dialect;
mod figures;
