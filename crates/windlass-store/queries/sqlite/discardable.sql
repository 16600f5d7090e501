-- Lists cancelled jobs whose output was not removed yet, with their connection.
-- Lock: none (reads a snapshot).
-- Index: windlass_jobs_discard.
SELECT id, connection FROM windlass_jobs WHERE discard AND connection IN (SELECT value FROM json_each(?1)) LIMIT ?2
