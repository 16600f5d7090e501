-- Raises the generation of a store. A higher one stays. The table is locked.
UPDATE windlass_stores SET generation = {generation}
WHERE store_id = {store} AND connection = {connection} AND generation < {generation}
