-- Lists cancelled jobs whose output was not removed yet, with their connection.
-- Lock: none.
-- Index: windlass_jobs_discard.
SELECT id, connection FROM windlass_jobs WHERE discard AND connection = ANY ($1) LIMIT $2
