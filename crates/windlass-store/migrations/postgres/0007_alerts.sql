-- What went wrong and is to be told: one row per occurrence, by its kind and subject. A condition (too
-- many letters, nobody to work) has its job type as its subject for as long as it holds; one that is
-- only watched yet has no `raised_at`. Workers say what they can work on, so that work can be found
-- that nobody can take; a job says when its failure budget was exceeded last. What is paused and what
-- was lost is found without looking through everything.
CREATE TABLE windlass_alerts (
    id            uuid PRIMARY KEY,
    kind          text NOT NULL,
    subject       text NOT NULL,
    job_type      text NOT NULL,
    job_id        uuid,
    submitter     text,
    message       text NOT NULL,
    details       text NOT NULL,
    threshold     bigint,
    since         timestamptz NOT NULL,
    seen_at       timestamptz NOT NULL,
    raised_at     timestamptz,
    cleared_at    timestamptz,
    delivery      text NOT NULL,
    attempts      bigint NOT NULL DEFAULT 0,
    next_at       timestamptz NOT NULL,
    delivered_at  timestamptz,
    error         text
);
CREATE UNIQUE INDEX windlass_alerts_occurrence ON windlass_alerts (kind, subject);
CREATE INDEX windlass_alerts_newest ON windlass_alerts (raised_at, id);
CREATE INDEX windlass_alerts_pending ON windlass_alerts (next_at) WHERE delivery = 'pending';

ALTER TABLE windlass_workers ADD COLUMN connections text[];
ALTER TABLE windlass_workers ADD COLUMN handlers text[];
ALTER TABLE windlass_workers ADD COLUMN only_job uuid;

ALTER TABLE windlass_jobs ADD COLUMN exceeded_at timestamptz;
CREATE INDEX windlass_jobs_exceeded ON windlass_jobs (exceeded_at) WHERE exceeded_at IS NOT NULL;
CREATE INDEX windlass_jobs_failed ON windlass_jobs (finished_at) WHERE status = 'FAILED';
CREATE INDEX windlass_dead_letters_new ON windlass_dead_letters (job_type) WHERE status = 'new';
CREATE INDEX windlass_jobs_paused ON windlass_jobs (id) WHERE status = 'PAUSED';
CREATE INDEX windlass_chunks_lost ON windlass_chunks (job_id, number) WHERE losses > 0;
