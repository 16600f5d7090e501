-- A trading company as samples for PostgreSQL have it: char(n) keys that are padded with blanks, mixed-case names in
-- quotes, a composite key, bytea, money, real, a generated column, a view and a table in another schema. One table has a version column, the others have none.
CREATE SCHEMA sales;
CREATE TABLE "Customers" (
    "CustomerID" char(5) PRIMARY KEY, "CompanyName" varchar(40) NOT NULL, "Region" varchar(15),
    row_version integer NOT NULL DEFAULT 1
);
CREATE TABLE categories (category_id smallint PRIMARY KEY, category_name varchar(15) NOT NULL, picture bytea);
CREATE TABLE products (
    product_id smallint PRIMARY KEY, product_name varchar(40) NOT NULL, category_id smallint REFERENCES categories,
    unit_price real, list_price money, units_in_stock smallint, discontinued integer NOT NULL
);
CREATE TABLE orders (
    order_id integer PRIMARY KEY, customer_id char(5) REFERENCES "Customers", order_date date, freight real,
    ship_region varchar(15), ship_name text
);
CREATE TABLE order_details (
    order_id integer NOT NULL REFERENCES orders, product_id smallint NOT NULL REFERENCES products,
    unit_price numeric(10,2) NOT NULL, quantity smallint NOT NULL, discount real NOT NULL,
    total numeric(12,2) GENERATED ALWAYS AS (unit_price * quantity) STORED,
    PRIMARY KEY (order_id, product_id)
);
CREATE TABLE sales.targets (region varchar(15) PRIMARY KEY, target numeric(14,2) NOT NULL);
CREATE TABLE notes (line text);
CREATE VIEW order_subtotals AS SELECT order_id, sum(total) AS subtotal FROM order_details GROUP BY order_id;

INSERT INTO "Customers" SELECT 'C' || n, 'Company ' || n, CASE WHEN n % 3 = 0 THEN NULL ELSE 'West' END
FROM generate_series(1, 90) AS n;
INSERT INTO categories SELECT n, 'Category ' || n, '\x151c2f00'::bytea FROM generate_series(1, 8) AS n;
INSERT INTO products SELECT n, 'Prøduct ' || n, n % 8 + 1, n * 1.1, (n * 1.25)::numeric::money, n % 40, n % 2
FROM generate_series(1, 77) AS n;
INSERT INTO orders SELECT 10000 + n, 'C' || (n % 90 + 1), date '1996-07-04' + n % 600, n * 0.37, NULL, 'Ship ''' || n
FROM generate_series(1, 830) AS n;
INSERT INTO order_details SELECT 10000 + n, n % 77 + 1, n % 90 + 0.5, n % 50 + 1, 0.05 FROM generate_series(1, 830) AS n;
INSERT INTO order_details SELECT 10000 + n, (n + 30) % 77 + 1, n % 30 + 0.25, n % 20 + 1, 0
FROM generate_series(1, 830) AS n;
INSERT INTO sales.targets VALUES ('West', 1000000.50), ('East', 99.99);
