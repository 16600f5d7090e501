-- Reads the status of the jobs of valid leases; lost leases have no row. The status is compared as
-- an expression, which keeps the planner from the partial index: its dead entries pile up while a
-- long transaction is open.
-- Lock: none.
-- Index: the primary keys.
WITH jobs AS MATERIALIZED (
    SELECT id, status FROM windlass_jobs WHERE id = ANY ($1)
)
SELECT l.place, j.status
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
    AS l (job, number, epoch, nonce, place)
JOIN windlass_chunks c
    ON c.job_id = l.job AND c.number = l.number AND c.epoch = l.epoch AND c.nonce = l.nonce
        AND c.status || '' = 'PROCESSING'
JOIN jobs j ON j.id = c.job_id
