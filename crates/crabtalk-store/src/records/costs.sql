-- Model calls and what they cost, by local day. A row with `code` is the sum of a
-- run that ended. A row with `life` and `number` is the estimate of a call that this
-- life of the daemon makes, or that a former one never finished. `money` is null
-- where no price is known.
CREATE TABLE cost (
    id INTEGER PRIMARY KEY,
    day TEXT NOT NULL,
    at TEXT NOT NULL,
    code INTEGER,
    life INTEGER,
    number INTEGER,
    speaker TEXT NOT NULL,
    agent TEXT NOT NULL,
    sender TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    run INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cache_hit_tokens INTEGER,
    money REAL,
    unpriced_tokens INTEGER NOT NULL,
    UNIQUE (life, number)
) STRICT;
CREATE INDEX cost_by_day ON cost (day);
