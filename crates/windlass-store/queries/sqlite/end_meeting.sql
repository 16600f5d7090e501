-- Ends a meeting: its rule has fired. Lock: the meeting, held already. Index: the primary key.
DELETE FROM windlass_meetings WHERE key = ?1
