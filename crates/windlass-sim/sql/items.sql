-- Makes the items 1 to ?1. One in thirteen is bad if ?2.
INSERT INTO items (id, grp, bad)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
SELECT i, i % 3, i % 13 = 5 AND ?2 FROM n
