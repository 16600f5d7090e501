-- Lists the newest $2 dead letters whose id begins with a text, or ends with it if the text has eight characters.
-- Lock: none.
-- Index: none; it reads the ids of all rows. Only commands that people type use it.
SELECT id FROM windlass_dead_letters
WHERE substr(id::text, 1, length($1)) = $1 OR right(id::text, 8) = $1
ORDER BY id DESC
LIMIT $2
