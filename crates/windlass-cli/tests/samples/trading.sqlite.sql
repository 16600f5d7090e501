-- A trading company as samples for SQLite have it: declared types that SQLite does not know (nvarchar, money, datetime),
-- names with a blank, a text key without NOT NULL, a composite key WITHOUT ROWID, a blob, NOCASE, a generated
-- column and a view. One table has a version column, the others have none.
CREATE TABLE Customers (
    CustomerID nchar(5) NOT NULL PRIMARY KEY COLLATE NOCASE, CompanyName nvarchar(40) NOT NULL, Region nvarchar(15),
    row_version integer NOT NULL DEFAULT 1
);
CREATE TABLE Categories (CategoryID integer PRIMARY KEY, CategoryName nvarchar(15) NOT NULL, Picture blob);
CREATE TABLE Products (
    ProductID integer PRIMARY KEY AUTOINCREMENT, ProductName nvarchar(40) NOT NULL,
    CategoryID integer REFERENCES Categories, UnitPrice money DEFAULT 0, UnitsInStock smallint, Discontinued bit NOT NULL
);
CREATE TABLE Orders (
    OrderID integer PRIMARY KEY, CustomerID nchar(5) REFERENCES Customers, OrderDate datetime, Freight money,
    ShipName nvarchar(40)
);
CREATE TABLE "Order Details" (
    OrderID int NOT NULL, ProductID int NOT NULL, UnitPrice money NOT NULL, Quantity smallint NOT NULL,
    Discount real NOT NULL, Total money GENERATED ALWAYS AS (UnitPrice * Quantity) STORED,
    PRIMARY KEY (OrderID, ProductID)
) WITHOUT ROWID;
CREATE TABLE Notes (Line text);
CREATE VIEW "Order Subtotals" AS SELECT OrderID, sum(Total) AS Subtotal FROM "Order Details" GROUP BY OrderID;

CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 830) SELECT n FROM n;
INSERT INTO Customers SELECT 'C' || n, 'Company ' || n, CASE WHEN n % 3 = 0 THEN NULL ELSE 'West' END, 1 FROM n WHERE n <= 90;
INSERT INTO Categories SELECT n, 'Category ' || n, x'151c2f00' FROM n WHERE n <= 8;
INSERT INTO Products SELECT n, 'Prøduct ' || n, n % 8 + 1, n * 1.1, n % 40, n % 2 FROM n WHERE n <= 77;
INSERT INTO Orders SELECT 10000 + n, 'C' || (n % 90 + 1), date('1996-07-04', (n % 600) || ' days'), n * 0.37, 'Ship ''' || n FROM n;
INSERT INTO "Order Details" (OrderID, ProductID, UnitPrice, Quantity, Discount)
SELECT 10000 + n, n % 77 + 1, n % 90 + 0.5, n % 50 + 1, 0.05 FROM n;
INSERT INTO "Order Details" (OrderID, ProductID, UnitPrice, Quantity, Discount)
SELECT 10000 + n, (n + 30) % 77 + 1, n % 30 + 0.25, n % 20 + 1, 0 FROM n;
DROP TABLE n;
