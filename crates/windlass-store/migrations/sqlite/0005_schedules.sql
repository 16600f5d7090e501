-- When job types are submitted by themselves. The next time is kept here and not in memory, and moves
-- on only from the time that whoever moves it has seen to.
CREATE TABLE windlass_schedules (
    job_type  TEXT PRIMARY KEY NOT NULL,
    spec      TEXT NOT NULL,
    next_at   INTEGER,
    paused    INTEGER NOT NULL DEFAULT 0,
    last_at   INTEGER,
    last_job  TEXT,
    error     TEXT
);
