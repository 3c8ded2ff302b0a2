-- Messages and titles, for the search in all conversations. The id is the time of the
-- message in seconds since 1970 times 2^24, plus a number: ids are in the order of time.
-- `entry` is the offset of the message in its log, null for the title.
CREATE TABLE turn (id INTEGER PRIMARY KEY, log INTEGER NOT NULL, entry INTEGER) STRICT;
CREATE INDEX turn_by_log ON turn (log);

-- Terms are cut and folded already. One names the agent, one the sender.
CREATE VIRTUAL TABLE turn_terms USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
