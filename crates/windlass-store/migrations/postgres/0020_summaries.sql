-- The request as listings show it, where it is too large to be shown whole: a page of jobs never reads
-- megabytes.
ALTER TABLE windlass_jobs ADD COLUMN summary text;
