-- Removes what is said of a subject. Lock: its row. Index: the primary key.
DELETE FROM windlass_controls WHERE subject = $1
