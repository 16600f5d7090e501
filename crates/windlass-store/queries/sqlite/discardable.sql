-- Cancelled jobs whose output is still there, with its connection. Lock: none, on a snapshot.
-- Index: windlass_jobs_discard.
SELECT id, connection FROM windlass_jobs WHERE discard AND connection IN (SELECT value FROM json_each(?1)) LIMIT ?2
