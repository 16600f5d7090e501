-- The conditions of a DeadLetterFilter (?1 to ?9). They replace the placeholder `filter` of other
-- statements. A NULL parameter does not restrict.
-- Lock: that of the statement.
-- Index: that of the statement.
(?1 IS NULL OR id IN (SELECT value FROM json_each(?1)))
AND (?2 IS NULL OR job_id = ?2)
AND (?3 IS NULL OR job_type IN (SELECT value FROM json_each(?3)))
AND (?4 IS NULL OR error LIKE ?4 ESCAPE '\')
AND (?5 IS NULL OR status = ?5)
AND (?6 IS NULL OR created_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?6)
AND (?8 IS NULL OR submitter = ?8)
AND (?9 IS NULL OR fingerprint = ?9)
AND (?7 IS NULL OR (created_at, id)
    < (SELECT b.created_at, b.id FROM windlass_dead_letters b WHERE b.id = ?7))
