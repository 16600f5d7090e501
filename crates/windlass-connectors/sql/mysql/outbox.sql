-- The outbox: requests that applications insert in their own transactions. The relay submits them as jobs. An
-- application needs only this:
--   GRANT INSERT ON windlass_outbox TO …;
--   INSERT INTO windlass_outbox (job_type, request) VALUES (…);
--
-- The id becomes the id of the job. An application that needs to know it provides a UUID.
CREATE TABLE IF NOT EXISTS windlass_outbox (
    id         CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (uuid()) PRIMARY KEY,
    job_type   VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    request    LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ('{}'),
    created_at DATETIME(3) NOT NULL DEFAULT (utc_timestamp(3)),
    attempts   BIGINT NOT NULL DEFAULT 0,
    error      LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    next_at    DATETIME(3) NOT NULL DEFAULT '2000-01-01 00:00:00',
    KEY windlass_outbox_due (next_at, id),
    CONSTRAINT id_is_a_uuid CHECK (
        id REGEXP '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
    -- A larger count would overflow.
    CONSTRAINT attempts_is_a_count CHECK (attempts BETWEEN 0 AND 1000000000),
    CONSTRAINT job_type_is_missing CHECK (job_type <> ''),
    CONSTRAINT request_is_a_json_object CHECK (json_valid(request) AND json_type(request) = 'OBJECT'),
    -- The next three pass a request that is no JSON, because MySQL might otherwise report one of them.
    CONSTRAINT request_names_no_job_type CHECK (
        json_extract(IF(json_valid(request), request, '{}'), '$.jobType') IS NULL),
    CONSTRAINT items_is_a_list CHECK (
        json_type(json_extract(IF(json_valid(request), request, '{}'), '$.items'))
            IN ('ARRAY', 'NULL')),
    CONSTRAINT claims_is_a_json_object CHECK (
        json_type(json_extract(IF(json_valid(request), request, '{}'), '$.claims'))
            IN ('OBJECT', 'NULL')),
    -- The size of the text, including the name of the job type.
    CONSTRAINT request_has_at_most_8388608_bytes CHECK (
        length(request) + length(job_type) + 16 <= 8388608)
) ENGINE = InnoDB
