-- Raises the epochs of a job's chunks to those of their ledger rows, after the store was restored
-- from a backup.
-- Lock: the chunks.
-- Index: the primary key.
UPDATE windlass_chunks c
SET epoch = d.epoch
FROM unnest($2::bigint[], $3::bigint[]) AS d (number, epoch)
WHERE c.job_id = $1 AND c.number = d.number AND c.epoch < d.epoch
