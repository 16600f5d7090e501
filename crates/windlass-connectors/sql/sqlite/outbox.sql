-- The outbox: requests that applications insert in their own transactions. The relay submits them as jobs. Every
-- process that can write the file can insert:
--   INSERT INTO windlass_outbox (job_type, request) VALUES (…) RETURNING id;
--
-- The id, a version 7 UUID, becomes the id of the job. Times are milliseconds since 1970, by this machine's clock. The
-- application's SQLite evaluates all of it, and may be an old version.
CREATE TABLE IF NOT EXISTS windlass_outbox (
    id         TEXT    NOT NULL PRIMARY KEY DEFAULT (
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 1, 8)
        || '-' ||
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 9, 4)
        || '-7' || substr(lower(hex(randomblob(2))), 2)
        || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
        || '-' || lower(hex(randomblob(6)))),
    job_type   TEXT    NOT NULL,
    request    TEXT    NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL
        DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    attempts   INTEGER NOT NULL DEFAULT 0,
    error      TEXT,
    next_at    INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT id_is_a_uuid CHECK (
        id LIKE '________-____-____-____-____________' AND length(replace(id, '-', '')) = 32
        AND replace(id, '-', '') NOT GLOB '*[^0-9a-f]*'),
    -- A larger count would overflow.
    CONSTRAINT attempts_is_a_count CHECK (
        typeof(attempts) = 'integer' AND attempts BETWEEN 0 AND 1000000000),
    CONSTRAINT times_are_milliseconds CHECK (
        typeof(created_at) = 'integer' AND typeof(next_at) = 'integer'),
    CONSTRAINT job_type_is_missing CHECK (job_type <> ''),
    -- A column of any type accepts bytes.
    CONSTRAINT everything_is_text CHECK (
        typeof(id) = 'text' AND typeof(job_type) = 'text' AND typeof(request) = 'text'),
    CONSTRAINT request_is_a_json_object CHECK (
        CASE json_valid(request) WHEN 1 THEN json_type(request) = 'object' ELSE 0 END),
    CONSTRAINT request_names_no_job_type CHECK (
        CASE json_valid(request) WHEN 1 THEN json_type(request, '$.jobType') IS NULL ELSE 1 END),
    CONSTRAINT items_is_a_list CHECK (
        CASE json_valid(request)
            WHEN 1 THEN coalesce(json_type(request, '$.items'), 'null') IN ('array', 'null')
            ELSE 1 END),
    CONSTRAINT claims_is_a_json_object CHECK (
        CASE json_valid(request)
            WHEN 1 THEN coalesce(json_type(request, '$.claims'), 'null') IN ('object', 'null')
            ELSE 1 END),
    -- The size of the text, including the name of the job type.
    CONSTRAINT request_has_at_most_8388608_bytes CHECK (
        length(CAST(request AS BLOB)) + length(CAST(job_type AS BLOB)) + 16 <= 8388608)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS windlass_outbox_due ON windlass_outbox (next_at, id);

-- An empty list of items makes no job.
CREATE TRIGGER IF NOT EXISTS windlass_outbox_nothing BEFORE INSERT ON windlass_outbox
WHEN CASE json_valid(NEW.request)
    WHEN 1 THEN json_type(NEW.request, '$.items') = 'array'
        AND json_array_length(NEW.request, '$.items') = 0
    ELSE 0 END
BEGIN
    SELECT RAISE(IGNORE);
END;
