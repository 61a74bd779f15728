mod line;
