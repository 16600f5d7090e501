-- How many letters name a redrive. Lock: the writer's. Index: windlass_dead_letters_redrive.
SELECT count(*) AS letters FROM windlass_dead_letters WHERE redrive_job = ?1
