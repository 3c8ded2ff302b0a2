-- Entries of the audit. `entry` is JSON with its number `n` and with `prev`, the
-- SHA-256 of the entry before. Chains before the last one are kept and not checked;
-- chain 0 has the entries of the files before this table.
CREATE TABLE audit (
    chain INTEGER NOT NULL,
    n INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (chain, n)
) STRICT;

-- The last entry of the chain that is written.
CREATE TABLE audit_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    chain INTEGER NOT NULL,
    n INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
