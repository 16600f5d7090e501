-- The example's data: some 18,000 visits of 60 days, the same rows each time it is run.
--
--   psql "$DATABASE_URL" -f visits.sql
--
-- A pair of visit date and ssn has several rows, mostly one to five. Every tenth date is hot (350
-- people instead of 60), and so is one pair in a hundred (forty rows). Every sixth visit has no
-- conflict, and the job does not touch it.
DROP TABLE IF EXISTS visits, services;

-- What a visit was for. The statement joins it twice: for the visit, and for the one it conflicts
-- with.
CREATE TABLE services (
    service_id   integer PRIMARY KEY,
    service_code text    NOT NULL,
    rate         numeric NOT NULL
);

INSERT INTO services
SELECT n, 'S' || to_char(n, 'FM000'), 20 + n * 0.25
FROM generate_series(1, 200) AS n;

-- The foreign keys make sure that the join finds every visit: none is skipped, so none stays due.
CREATE TABLE visits (
    visit_id         bigint  PRIMARY KEY,
    visit_date       date    NOT NULL,
    ssn              text    NOT NULL,
    conflict_id      bigint,
    service_id       integer NOT NULL REFERENCES services,
    con_service_id   integer NOT NULL REFERENCES services,
    service_code     text,
    con_service_code text,
    rate_difference  numeric,
    update_flag      integer,
    updated_date     timestamptz
);

INSERT INTO visits (visit_id, visit_date, ssn, conflict_id, service_id, con_service_id)
SELECT
    n,
    visit_date,
    ssn,
    CASE WHEN n % 6 <> 0 THEN 1000000 + n END,
    1 + n % 200,
    1 + n * 7 % 200
FROM (
    SELECT
        date '2025-01-01' + day AS visit_date,
        '9' || to_char(person * 7919 % 100000000, 'FM00-00-0000') AS ssn,
        row_number() OVER (ORDER BY day, person, visit) AS n
    FROM
        generate_series(0, 59) AS day,
        generate_series(1, CASE WHEN day % 10 = 3 THEN 350 ELSE 60 END) AS person,
        generate_series(1, CASE
            WHEN (day * 31 + person) % 100 = 0 THEN 40
            ELSE 1 + (day + person * 3) % 5
        END) AS visit
) AS made;

-- The key that chunks are cut by.
CREATE INDEX visits_key ON visits (visit_date, ssn);

-- The same for the visits that are due alone: it is empty when all are done, and so a job that
-- has nothing to do knows it at a glance.
CREATE INDEX visits_due ON visits (visit_date, ssn)
    WHERE conflict_id IS NOT NULL AND updated_date IS NULL;

ANALYZE visits, services;
