-- Cron entries; `account` is JSON: when it fired last, how often it failed, and more.
CREATE TABLE cron_entry (id INTEGER PRIMARY KEY, account TEXT NOT NULL) STRICT;
-- Runs of cron entries, and due times that no run came of; JSON. `run` numbers runs.
CREATE TABLE cron_run (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    run INTEGER UNIQUE,
    begun TEXT,
    ended TEXT,
    skipped TEXT
) STRICT;
CREATE INDEX cron_run_by_entry ON cron_run (entry, id);
