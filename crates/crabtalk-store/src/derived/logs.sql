-- Logs of conversations. `agent` and `sender` are null until line 1 was read,
-- `modified` (nanoseconds since 1970) is null while the log may have changed.
-- `touched` counts changes, so that an older look does not hide a newer one.
-- `turn` has the messages of the first `indexed` bytes; `indexed_at` is `modified` when
-- these were all.
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sort_key TEXT NOT NULL,
    follows_rule INTEGER NOT NULL,
    agent TEXT,
    sender TEXT,
    modified INTEGER,
    touched INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0,
    indexed_at INTEGER NOT NULL DEFAULT -1
) STRICT;
CREATE INDEX log_by_sort_key ON log (follows_rule, sort_key);
CREATE INDEX log_by_time ON log (modified DESC);
CREATE INDEX log_unindexed ON log (id) WHERE modified IS NOT indexed_at;

-- The state of the folder that the rows of `log` show.
CREATE TABLE log_folder (id INTEGER PRIMARY KEY CHECK (id = 1), modified INTEGER) STRICT;
