-- Whether a trigger is due. Lock: none, on a snapshot. Index: none, they are few.
SELECT EXISTS (SELECT 1 FROM windlass_triggers WHERE available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS due
