-- The demo's report: what was settled, by branch.
SELECT branch, count(*), sum(amount), sum(fee) FROM transactions WHERE status = 'settled'
 GROUP BY branch ORDER BY sum(amount) DESC LIMIT 5
