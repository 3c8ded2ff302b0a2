-- Passages of archived turns, for recall. The id of a passage is made of the
-- numbers of its conversation, its archive and itself, in the order of the log;
-- the last passage of an archive has the highest number, since the newest part
-- of an archive is indexed first.
CREATE TABLE passage_conversation (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    sender TEXT NOT NULL,
    UNIQUE (agent, sender)
) STRICT;

-- `first` is the id of the first passage that is indexed; `before` is null once
-- the whole archive is indexed.
CREATE TABLE passage_archive (
    conversation INTEGER NOT NULL REFERENCES passage_conversation (id),
    archive INTEGER NOT NULL,
    title TEXT NOT NULL,
    archived_at TEXT NOT NULL,
    messages INTEGER NOT NULL,
    before INTEGER,
    first INTEGER NOT NULL,
    PRIMARY KEY (conversation, archive)
) STRICT, WITHOUT ROWID;

CREATE TABLE passage (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    start INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    hash INTEGER NOT NULL,
    speaker TEXT NOT NULL,
    day INTEGER,
    flags INTEGER NOT NULL,
    terms TEXT NOT NULL
) STRICT;
CREATE INDEX passage_by_day ON passage (day);

-- Terms are cut and stemmed already: this tokenizer takes them as they are.
CREATE VIRTUAL TABLE passage_terms USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
