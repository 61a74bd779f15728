mod file;
