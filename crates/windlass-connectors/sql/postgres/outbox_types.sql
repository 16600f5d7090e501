-- Records what windlass_enqueue checks of the requests of each job type. In the order of their names, so that two
-- processes do not wait for each other; rows that stay as they are are not locked.
INSERT INTO windlass_outbox_types AS old (job_type, list, unit)
SELECT new.job_type, new.list, new.unit
FROM unnest($1::text[], $2::text[], $3::text[]) AS new (job_type, list, unit)
WHERE NOT EXISTS (
    SELECT FROM windlass_outbox_types AS same
    WHERE same.job_type = new.job_type AND (same.list, same.unit) IS NOT DISTINCT FROM (new.list, new.unit))
ORDER BY new.job_type
ON CONFLICT (job_type) DO UPDATE SET list = excluded.list, unit = excluded.unit
