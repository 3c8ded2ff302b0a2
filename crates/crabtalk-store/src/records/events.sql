-- Events that wait for the runs that they fire. `fires` is a JSON array of numbers of
-- subscriptions.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    payload TEXT NOT NULL,
    depth INTEGER NOT NULL,
    fires TEXT NOT NULL,
    about TEXT NOT NULL
) STRICT;
-- The last number that was given to an event, subscription, cron entry or its run.
CREATE TABLE series (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT;
