-- Lists the newest ?2 jobs whose id begins with a text, or ends with it if the text has eight characters.
-- Lock: none (reads a snapshot).
-- Index: none; it reads the ids of all rows. Only commands that people type use it.
SELECT id FROM windlass_jobs
WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -8) = ?1
ORDER BY id DESC
LIMIT ?2
