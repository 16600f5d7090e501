-- Lists the original jobs of matching letters that can be redriven now.
-- Lock: none.
-- Index: windlass_dead_letters_item if a job is given, otherwise a scan of all letters.
SELECT job_id, job_type, count(*) AS letters
FROM windlass_dead_letters l
WHERE {filter}
    AND {redrivable}
GROUP BY job_id, job_type
ORDER BY job_id
