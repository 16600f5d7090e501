-- A job waits for one of its parents no more. Lock: the link, after the job. Index: the primary key.
UPDATE windlass_links SET waits = 0 WHERE child = ?1 AND parent = ?2 AND waits
