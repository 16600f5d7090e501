-- What holds for all jobs of a type, whoever works on them: until when, and why, none is claimed.
CREATE TABLE windlass_controls (
    job_type    TEXT PRIMARY KEY NOT NULL,
    held_until  INTEGER,
    reason      TEXT
);
