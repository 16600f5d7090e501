-- The generation that a store recorded under a name of the connection. Lock: none.
SELECT generation FROM windlass_stores WHERE store_id = {store} AND connection = {connection}
