mod result;
