-- Before a claim: whoever counts the chunks at work of a limited subject counts alone, since two
-- that count at once would both find room. The claim that follows sees what the last one took.
-- Lock: the control rows of limited subjects, in order. Index: none, they are few.
SELECT
FROM windlass_controls
WHERE coalesce(concurrency, default_concurrency) IS NOT NULL
ORDER BY subject
FOR UPDATE
