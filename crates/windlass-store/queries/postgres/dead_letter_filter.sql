-- The conditions of a DeadLetterFilter ($1 to $9). They replace the placeholder `filter` of other
-- statements. A NULL parameter does not restrict.
-- Lock: that of the statement.
-- Index: that of the statement.
($1::uuid[] IS NULL OR id = ANY ($1))
AND ($2::uuid IS NULL OR job_id = $2)
AND ($3::text[] IS NULL OR job_type = ANY ($3))
AND ($4::text IS NULL OR error ILIKE $4 ESCAPE '\')
AND ($5::text IS NULL OR status = $5)
AND ($6::bigint IS NULL OR created_at <= clock_timestamp() - $6 * interval '1 millisecond')
AND ($8::text IS NULL OR submitter = $8)
AND ($9::text IS NULL OR fingerprint = $9)
AND ($7::uuid IS NULL OR (created_at, id)
    < (SELECT b.created_at, b.id FROM windlass_dead_letters b WHERE b.id = $7))
