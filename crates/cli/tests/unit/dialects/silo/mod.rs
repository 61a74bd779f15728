mod csv;
mod json;
