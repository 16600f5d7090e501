-- How leases stand. Lock: none. Index: the primary keys; the status is compared as an expression,
-- since the entries of the partial index pile up while somebody's long transaction is open.
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
