-- What runs changed among files, for undo; `entry` is JSON. Contents of files are kept
-- beside the database.
CREATE TABLE change_entry (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    sender TEXT NOT NULL,
    run INTEGER NOT NULL,
    entry TEXT NOT NULL
) STRICT;
CREATE INDEX change_by_run ON change_entry (agent, sender, run, id);
