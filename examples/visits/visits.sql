-- The example's data: some 18,000 rows of 60 days in conflictvisitmaps, the same rows each time it is run.
--
--   psql "$DATABASE_URL" -f visits.sql
--
-- A pair of visit date and ssn has several rows, mostly one to five. Every tenth date is hot (350
-- people instead of 60), and so is one pair in a hundred (forty rows). Every sixth row has no
-- conflict, and the job does not touch it.
DROP TABLE IF EXISTS conflictvisitmaps, visits, services, providers;

CREATE TABLE services (
    "ServiceCodeID" integer PRIMARY KEY,
    "ServiceCode"   text NOT NULL,
    "ServiceName"   text NOT NULL
);

INSERT INTO services
SELECT n, 'S' || to_char(n, 'FM000'), 'Service ' || n
FROM generate_series(1, 200) AS n;

CREATE TABLE providers (
    "ProviderID"   integer PRIMARY KEY,
    "ProviderName" text NOT NULL
);

INSERT INTO providers
SELECT n, 'Provider ' || n
FROM generate_series(1, 40) AS n;

-- The facts of each visit. The statement joins them twice: for the visit (V1), and for the one that it
-- is in conflict with (V2).
CREATE TABLE visits (
    "VisitID"       integer     PRIMARY KEY,
    "ServiceCodeID" integer     NOT NULL REFERENCES services,
    "ProviderID"    integer     NOT NULL REFERENCES providers,
    "CaregiverCode" text        NOT NULL,
    "SchStartTime"  timestamptz NOT NULL,
    "SchEndTime"    timestamptz NOT NULL,
    "BilledRate"    numeric     NOT NULL,
    "BilledMinutes" integer     NOT NULL
);

INSERT INTO visits
SELECT
    n,
    1 + n % 200,
    1 + n % 40,
    'C' || to_char(n * 37 % 1000, 'FM000'),
    timestamptz '2025-01-01 08:00+00' + n % 97 * interval '5 minutes',
    timestamptz '2025-01-01 09:00+00' + n % 97 * interval '5 minutes' + n % 4 * interval '15 minutes',
    20 + n % 50 * 0.25,
    60 + n % 4 * 15
FROM generate_series(1, 2000) AS n;

-- One row for each visit that was compared with others. "CONFLICTID" is set if it is in conflict with
-- "ConVisitID"; the columns from "ServiceCodeID" to "RateDifference" are what the job computes. The
-- foreign keys make sure that its joins find every visit: none is skipped, so none stays due.
CREATE TABLE conflictvisitmaps (
    "ID"               bigint  PRIMARY KEY,
    "VisitDate"        date    NOT NULL,
    "SSN"              text    NOT NULL,
    "CONFLICTID"       bigint,
    "VisitID"          integer NOT NULL REFERENCES visits,
    "ConVisitID"       integer NOT NULL REFERENCES visits,
    "ServiceCodeID"    integer,
    "ServiceCode"      text,
    "ServiceName"      text,
    "ProviderID"       integer,
    "ProviderName"     text,
    "CaregiverCode"    text,
    "SchStartTime"     timestamptz,
    "SchEndTime"       timestamptz,
    "BilledRate"       numeric,
    "BilledMinutes"    integer,
    "BilledAmount"     numeric,
    "ConServiceCodeID" integer,
    "ConServiceCode"   text,
    "ConServiceName"   text,
    "ConProviderID"    integer,
    "ConProviderName"  text,
    "ConCaregiverCode" text,
    "ConSchStartTime"  timestamptz,
    "ConSchEndTime"    timestamptz,
    "ConBilledRate"    numeric,
    "ConBilledMinutes" integer,
    "ConBilledAmount"  numeric,
    "OverlapMinutes"   integer,
    "RateDifference"   numeric,
    "UpdateFlag"       integer,
    "UpdatedDate"      timestamptz
);

INSERT INTO conflictvisitmaps ("ID", "VisitDate", "SSN", "CONFLICTID", "VisitID", "ConVisitID")
SELECT
    n,
    visit_date,
    ssn,
    CASE WHEN n % 6 <> 0 THEN 1000000 + n END,
    1 + n % 2000,
    1 + n * 7 % 2000
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
CREATE INDEX conflictvisitmaps_key ON conflictvisitmaps ("VisitDate", "SSN");

-- The same for the rows that are due alone: it is empty when all are done, and so a job that has
-- nothing to do knows it at a glance.
CREATE INDEX conflictvisitmaps_due ON conflictvisitmaps ("VisitDate", "SSN")
    WHERE "CONFLICTID" IS NOT NULL AND "UpdatedDate" IS NULL;

ANALYZE conflictvisitmaps, visits, services, providers;
