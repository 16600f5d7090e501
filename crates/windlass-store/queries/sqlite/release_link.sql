-- Records that a job no longer waits for one of its parents.
-- Lock: the link, after the job.
-- Index: the primary key.
UPDATE windlass_links SET waits = 0 WHERE child = ?1 AND parent = ?2 AND waits
