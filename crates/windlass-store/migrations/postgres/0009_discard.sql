-- What a cancelled job has put out is to be removed, when nobody can add to it any more.
ALTER TABLE windlass_jobs ADD COLUMN discard boolean NOT NULL DEFAULT false;
CREATE INDEX windlass_jobs_discard ON windlass_jobs (id) WHERE discard;
