-- Deletes the links of a job that is being deleted.
-- Lock: the links, after the job.
-- Index: the primary key; windlass_links_parent.
DELETE FROM windlass_links WHERE child = $1 OR parent = $1
