-- Parts: what the chunks of a job have put out, and how far they are merged. A part in a file is
-- described here; a small one is kept here itself. Number -1 is what was made of all of them.
CREATE TABLE windlass_parts (
    job_id        uuid NOT NULL REFERENCES windlass_jobs,
    chunk         bigint NOT NULL,
    epoch         bigint NOT NULL,
    name          text,
    rows          bigint NOT NULL,
    bytes         bigint NOT NULL,
    sha256        text NOT NULL,
    content_hash  text NOT NULL,
    content       bytea,
    PRIMARY KEY (job_id, chunk)
);
ALTER TABLE windlass_jobs ADD COLUMN merge text;
