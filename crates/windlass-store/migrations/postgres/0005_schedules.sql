-- When job types are submitted by themselves. The next time is kept here and not in memory, and moves
-- on only from the time that whoever moves it has seen to.
CREATE TABLE windlass_schedules (
    job_type  text PRIMARY KEY,
    spec      text NOT NULL,
    next_at   timestamptz,
    paused    boolean NOT NULL DEFAULT false,
    last_at   timestamptz,
    last_job  uuid,
    error     text
);
