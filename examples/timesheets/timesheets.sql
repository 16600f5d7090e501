-- The example's data: a timesheet a week for every employee, three months of them; the same rows
-- each time it is run.
--
--   psql "$DATABASE_URL" -f timesheets.sql
--   psql "$DATABASE_URL" -v employees=250000 -f timesheets.sql
--
-- Each employee is of one of five counties. One in ten of a county is a manager, whose rows only
-- managers see.
\if :{?employees}
\else
    \set employees 2500
\endif

DROP TABLE IF EXISTS payslips, summaries, leave, timesheets, employees;

CREATE TABLE employees (
    employee_id bigint  PRIMARY KEY,
    county      text    NOT NULL,
    -- The role that one needs to see this employee's rows.
    visible_to  text    NOT NULL CHECK (visible_to IN ('clerk', 'manager')),
    hourly_rate numeric NOT NULL,
    UNIQUE (employee_id, county, visible_to)
);

INSERT INTO employees
SELECT
    n,
    (ARRAY['Devon', 'Essex', 'Kent', 'Norfolk', 'Surrey'])[1 + n % 5],
    CASE WHEN n / 5 % 10 = 0 THEN 'manager' ELSE 'clerk' END,
    CASE WHEN n / 5 % 10 = 0 THEN 30 ELSE 15 END + n % 7 * 0.5
FROM generate_series(1, :employees) AS n;

-- County and role stand in every row, since they decide who may see it. The foreign key makes sure
-- that they are the employee's.
CREATE TABLE timesheets (
    timesheet_id bigint  PRIMARY KEY,
    employee_id  bigint  NOT NULL,
    county       text    NOT NULL,
    visible_to   text    NOT NULL,
    month        text    NOT NULL,
    week         integer NOT NULL,
    hours        numeric NOT NULL,
    version      bigint  NOT NULL DEFAULT 1,
    FOREIGN KEY (employee_id, county, visible_to)
        REFERENCES employees (employee_id, county, visible_to)
);

INSERT INTO timesheets (timesheet_id, employee_id, county, visible_to, month, week, hours)
SELECT
    row_number() OVER (ORDER BY month, week, employee_id),
    employee_id,
    county,
    visible_to,
    month,
    week,
    35 + (employee_id * 3 + week * 5) % 11
FROM employees, unnest(ARRAY['2025-01', '2025-02', '2025-03']) AS month,
    generate_series(1, 4) AS week;

CREATE TABLE leave (
    leave_id    bigint  PRIMARY KEY,
    employee_id bigint  NOT NULL,
    county      text    NOT NULL,
    visible_to  text    NOT NULL,
    month       text    NOT NULL,
    days        numeric NOT NULL,
    version     bigint  NOT NULL DEFAULT 1,
    FOREIGN KEY (employee_id, county, visible_to)
        REFERENCES employees (employee_id, county, visible_to)
);

INSERT INTO leave (leave_id, employee_id, county, visible_to, month, days)
SELECT
    row_number() OVER (ORDER BY month, employee_id),
    employee_id,
    county,
    visible_to,
    month,
    1 + employee_id % 4 * 0.5
FROM employees, unnest(ARRAY['2025-01', '2025-02', '2025-03']) AS month
WHERE employee_id % 3 = 0;

-- A month's report is an index look-up, cut into ranges of the key.
CREATE INDEX timesheets_month ON timesheets (month, timesheet_id);
CREATE INDEX leave_month ON leave (month, leave_id);
CREATE INDEX timesheets_employee ON timesheets (employee_id, month);
CREATE INDEX leave_employee ON leave (employee_id, month);

-- What MONTHLY_SUMMARY and PAYSLIPS make.
CREATE TABLE summaries (
    employee_id bigint  NOT NULL REFERENCES employees,
    month       text    NOT NULL,
    hours       numeric NOT NULL,
    leave_days  numeric NOT NULL,
    PRIMARY KEY (employee_id, month)
);

CREATE TABLE payslips (
    employee_id bigint  NOT NULL REFERENCES employees,
    month       text    NOT NULL,
    pay         numeric NOT NULL,
    PRIMARY KEY (employee_id, month)
);

ANALYZE employees, timesheets, leave;
