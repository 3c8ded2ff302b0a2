-- Files of former versions whose content is in these tables.
CREATE TABLE imported (name TEXT PRIMARY KEY) STRICT;
