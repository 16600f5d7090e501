-- Records what the triggers of the outbox check of the requests of a job type.
INSERT INTO windlass_outbox_types (job_type, list, unit) VALUES (?1, ?2, ?3)
ON CONFLICT (job_type) DO UPDATE SET list = excluded.list, unit = excluded.unit
