-- Parts: what the chunks of a job have put out, and how far they are merged. A part in a file is
-- described here; a small one is kept here itself. Number -1 is what was made of all of them.
CREATE TABLE windlass_parts (
    job_id        TEXT NOT NULL REFERENCES windlass_jobs,
    chunk         INTEGER NOT NULL,
    epoch         INTEGER NOT NULL,
    name          TEXT,
    rows          INTEGER NOT NULL,
    bytes         INTEGER NOT NULL,
    sha256        TEXT NOT NULL,
    content_hash  TEXT NOT NULL,
    content       BLOB,
    PRIMARY KEY (job_id, chunk)
) STRICT;
ALTER TABLE windlass_jobs ADD COLUMN merge TEXT;
