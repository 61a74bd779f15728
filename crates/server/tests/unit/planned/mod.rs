mod later;
